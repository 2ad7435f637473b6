"""The parent's side: start a child, hear what it says, notice when it dies or hangs."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from onnxproof import errors
from onnxproof.errors import OnnxproofError, UserError
from onnxproof.files import make_scratch
from onnxproof.process.dialogue import name_signal
from onnxproof.process.orders import FAILED, SAID, Failure, Frames, Order, write_all
from onnxproof.system import FORKS

# Not `-m`, which looks into the current folder first: a numpy.py that lies beside some data is not to be run.
START = "import sys; sys.path = [p for p in sys.path if p]; from onnxproof.process.{} import main; main()"


class InternalError(OnnxproofError):
    """Our own bug, with the traceback of the process it happened in."""


@dataclass(frozen=True)
class End:
    """How a child ended before its work was done. `hung` where it was stopped for taking too long."""

    returncode: int
    hung: bool
    log: str
    starved: bool = False
    """Whether it said itself that memory was short."""

    @property
    def signal_name(self) -> str | None:
        """SIGSEGV and the like, where it was killed."""
        return name_signal(self.returncode)


def supervise(
    order: Order, receive: Callable[[bytes], Any], limit: Callable[[], float], standing: Child | None = None
) -> End | None:
    """Have one order carried out: None when it was done. What the child says goes to `receive`, undecoded. A `standing` child
    waits for the next order then, with all that it has loaded; any other one ends.

    The child is stopped when nothing comes for `limit` seconds, asked anew after each word. What the child raised is
    raised here: the user's mistake as such, a bug as `InternalError`; a lack of memory is a death.
    """
    child = standing or Child(fresh=order.fresh)
    failure: Failure | None = None
    done = False
    try:
        for kind, body in child.carry_out(order, limit):
            if kind == SAID:
                receive(body)
            elif kind == FAILED:
                failure = msgspec.msgpack.decode(body, type=Failure)
            else:
                done = True
        if done and standing is not None:
            return None
        end = child.end()
    finally:
        if not (done and standing is not None):
            child.stop()
    if failure is not None:
        _raise(failure)
    return None if done else replace(end, starved=failure is not None)


def _raise(failure: Failure) -> None:
    if failure.kind == "user":
        raise getattr(errors, failure.type, UserError)(failure.message)
    if failure.kind == "interrupted":
        raise KeyboardInterrupt
    if failure.kind != "memory":
        raise InternalError(f"{failure.message}\n{failure.traceback}")


class _Forked:
    """A child of the fork server's, which tells over a pipe its number and how it ended."""

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self._code: int | None = None
        self._pid = self._read_number()

    def _read_number(self) -> int | None:
        line = self._status.readline()
        return int(line) if line else None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self._code

    def wait(self) -> int:
        """The exit code; where the server itself was killed, as if the child had been."""
        if self._code is None:
            code = self._read_number()
            self._code = -signal.SIGKILL if code is None else code
            self._status.close()
        return self._code

    def kill(self) -> None:
        """Stop it."""
        if self._code is None and self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


class _ForkServer:
    """The parent's end of the process that forks children."""

    def __init__(self, preload: Sequence[str], scratch: Path, out: str) -> None:
        self._channel, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._process = _spawn("fork_server", [theirs.fileno()], subprocess.DEVNULL, str(scratch), out, *preload)
        theirs.close()

    def start(self, order: int, events: int, log: int) -> _Forked:
        """Fork a child; where the server has just died, so has the child."""
        read, write = os.pipe()
        with self._lock, contextlib.suppress(OSError):
            socket.send_fds(self._channel, [b"."], [order, events, log, write])
        os.close(write)
        return _Forked(read)

    @property
    def alive(self) -> bool:
        """Whether it can still fork."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop it, which may still be importing; its children have ended, or go on by themselves."""
        # In this order: a server that finds its parent gone tidies up.
        self._process.kill()
        self._process.wait()
        self._channel.close()


_server: _ForkServer | None = None
_scratch: Path | None = None


@contextlib.contextmanager
def prepare(preload: Sequence[str], out: str = "") -> Iterator[Path]:
    """Children that are started within are forked from one process that has imported these, and have the temporary folder that is
    yielded: it goes when they have gone, and with it what they left. Within another one nothing changes."""
    global _server, _scratch
    if _scratch is not None:
        yield _scratch
        return
    with make_scratch() as _scratch:
        _server = mine = _ForkServer(preload, _scratch, out and str(Path(out).absolute())) if FORKS else None
        try:
            yield _scratch
        finally:
            _server = _scratch = None
            if mine is not None:
                mine.close()


class Child:
    """One child process: it carries out one order after the other, until it hears of no more."""

    def __init__(self, *, fresh: bool = False) -> None:
        self._read, write = os.pipe()
        orders, self._orders = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed in end(): it lives as long as the child
        self._process = _start(orders, write, self._log.fileno(), fresh)
        os.close(write)
        os.close(orders)
        self._hung = False
        self._pipes: tuple[int, ...] = (self._orders, self._read)

    @property
    def alive(self) -> bool:
        """Whether it can be told something."""
        return not self._log.closed and self._process.poll() is None

    def carry_out(self, order: Order, limit: Callable[[], float]) -> Iterator[tuple[bytes, bytes]]:
        """What it says to an order, as it comes, to the word that it is done or has failed."""
        with contextlib.suppress(BrokenPipeError):  # it is dead, and will say nothing
            write_all(self._orders, pickle.dumps(order))
        frames = Frames()
        while True:
            ready, _, _ = select.select([self._read], [], [], limit())
            if not ready:
                self._hung = True
                return
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                return
            for kind, body in frames.feed(chunk):
                yield kind, body
                if kind != SAID:
                    return

    def end(self) -> End:
        """Wait for the child, which hears of no more orders, or stop it where it hangs."""
        self._close()
        if self._hung:
            self._process.kill()
        code = self._process.wait()
        self._log.seek(0)
        log = self._log.read()[-20_000:].decode("utf-8", "replace")
        self._log.close()
        return End(code, self._hung, log)

    def _close(self) -> None:
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = ()

    def stop(self) -> None:
        """Kill the child if it is still there."""
        self._close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _start(order: int, events: int, log: int, fresh: bool) -> _Forked | subprocess.Popen[bytes]:
    if _server is not None and _server.alive and not fresh:
        return _server.start(order, events, log)
    return _spawn("child", [order, events], log)


def _spawn(module: str, files: Sequence[int], log: int, *arguments: str) -> subprocess.Popen[bytes]:
    """A process of this package that gets open files, by their numbers, and arguments."""
    command = [sys.executable, "-c", START.format(module), *map(str, files), *arguments]
    # One hash seed for all children: a TARGET that iterates over sets must build the same model in each.
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    if _scratch is not None:
        environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(_scratch))
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=files, env=environment)
