"""The process that children are forked from: each with its own order, its end told to who asked, none that outlives them."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from onnxproof.process.orders import Frames, Order
from onnxproof.process.supervisor import FORKS, START

pytestmark = pytest.mark.skipif(not FORKS, reason="children are forked on Linux only")
TESTS = str(Path(__file__).parents[1])


def tell_what_is_there(say, modules):
    print("in the log")
    say([os.getppid(), [module for module in modules if module in sys.modules]])


def die(say):
    os.kill(os.getpid(), signal.SIGABRT)


def wait(say):
    say("waiting")
    time.sleep(600)


class Server:
    """A server, and the four open files of each request."""

    def __init__(self, *preload: str) -> None:
        self.channel, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-c", START.format("fork_server"), str(theirs.fileno()), *preload],
            pass_fds=(theirs.fileno(),),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])},
        )
        theirs.close()

    def start(self, name: str, **arguments) -> Child:
        return Child(self.channel, Order(f"process.test_fork_server:{name}", arguments))


class Child:
    def __init__(self, channel: socket.socket, order: Order) -> None:
        events, said = os.pipe()
        status, ended = os.pipe()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  # read when the child has ended
        with tempfile.TemporaryFile() as page:
            page.write(pickle.dumps(order))
            page.seek(0)
            socket.send_fds(channel, [b"."], [page.fileno(), said, self.log.fileno(), ended])
        os.close(said)
        os.close(ended)
        self.events, self.status = os.fdopen(events, "rb", buffering=0), os.fdopen(status, "rb", buffering=0)
        self.number = int(self.status.readline())

    def said(self) -> list[object]:
        """Everything, once it is over."""
        data = b"".join(iter(lambda: self.events.read(1 << 16), b""))
        return [msgspec.msgpack.decode(body) for _, body in Frames().feed(data) if body]

    def logged(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()


@pytest.fixture
def server():
    one = Server("json", "no.such.module", "colorsys")
    yield one
    one.channel.close()
    one.process.wait(20)


def test_a_child_has_what_was_imported_and_a_log_of_its_own(server):
    child = server.start("tell_what_is_there", modules=["colorsys", "torch", "onnxruntime"])
    assert child.said() == [[server.process.pid, ["colorsys"]]]
    assert child.status.readline() == b"0\n"
    assert child.logged() == "in the log\n"


def test_a_child_holds_nothing_of_its_sisters(server):
    first, second = server.start("wait"), server.start("wait")
    os.kill(first.number, signal.SIGKILL)
    assert first.status.readline() == b"-9\n"
    assert first.status.readline() == b""  # the pipe ended though the second lives
    os.kill(second.number, signal.SIGKILL)
    assert second.status.readline() == b"-9\n"


def test_each_end_goes_to_who_asked(server):
    first, second = server.start("die"), server.start("tell_what_is_there", modules=[])
    assert (first.status.readline(), second.status.readline()) == (b"-6\n", b"0\n")
    assert first.said() == []


def test_who_is_gone_leaves_nobody_behind(server):
    child = server.start("wait")
    assert select.select([child.events], [], [], 20)[0]  # it is at work
    server.channel.close()
    assert server.process.wait(20) == 0
    assert child.said() == ["waiting"]  # the pipe ended: it was killed
