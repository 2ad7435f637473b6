"""The parent's side: start a child, read its events, notice when it dies or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Event = Mapping[str, Any]
FORKS = sys.platform == "linux"
"""Elsewhere system libraries may not survive a fork: every child is started anew."""


@dataclass(frozen=True)
class End:
    """How a child ended. `signal` where it was killed; `hung` where it was stopped for taking too long."""

    returncode: int
    hung: bool
    log: str

    @property
    def signal_name(self) -> str | None:
        """SIGSEGV and the like."""
        if self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"


class Process(Protocol):
    """A running child."""

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def kill(self) -> None: ...


class Forked:
    """A child of the nursery's, which tells over a pipe its number and how it ended."""

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self._code: int | None = None
        self._pid = self._number()

    def _number(self) -> int | None:
        line = self._status.readline()
        return int(line) if line else None

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self._code

    def wait(self) -> int:
        """The exit code; where the nursery itself was killed, as if the child had been."""
        if self._code is None:
            code = self._number()
            self._code = -signal.SIGKILL if code is None else code
            self._status.close()
        return self._code

    def kill(self) -> None:
        """Stop it."""
        if self._code is None and self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


class Nursery:
    """The parent's end of a process that forks children."""

    def __init__(self, exporting: bool) -> None:
        self._channel, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "onnxproof.process.fork_server", str(theirs.fileno()), str(int(exporting))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=_environment(),
        )
        theirs.close()

    def start(self, order: int, events: int, log: int) -> Forked:
        """Fork a child; where the nursery has just died, so has the child."""
        read, write = os.pipe()
        with self._lock, contextlib.suppress(OSError):
            socket.send_fds(self._channel, [b"."], [order, events, log, write])
        os.close(write)
        return Forked(read)

    @property
    def alive(self) -> bool:
        """Whether it can still fork."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop it, which may still be importing; its children have ended, or go on by themselves."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


_nursery: Nursery | None = None


@contextlib.contextmanager
def nursery(exporting: bool = True) -> Iterator[None]:
    """Children that are started within are forked from one prepared process. Within another one nothing changes."""
    global _nursery
    if _nursery is not None or not FORKS:
        yield
        return
    _nursery = mine = Nursery(exporting)
    try:
        yield
    finally:
        _nursery = None
        mine.close()


def _environment() -> dict[str, str]:
    """One hash seed for all children: a TARGET that iterates over sets must build the same model in each."""
    return {"PYTHONHASHSEED": "0", **os.environ}


class Child:
    """One child process at work on one order. A `fresh` one shares nothing with others: its memory can be measured."""

    def __init__(self, order: Mapping[str, Any], *, fresh: bool = False) -> None:
        self._read, write = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed in end(): it lives as long as the child
        with tempfile.TemporaryFile() as page:
            page.write(pickle.dumps(dict(order)))
            page.seek(0)
            self._process = _start(page.fileno(), write, self._log.fileno(), fresh)
        os.close(write)
        self.hung = False

    def events(self, limit: Callable[[], float]) -> Iterator[Event]:
        """Events as they come; the child is stopped when nothing comes for `limit` seconds, asked anew after each."""
        buffer = b""
        try:
            while True:
                ready, _, _ = select.select([self._read], [], [], limit())
                if not ready:
                    self.hung = True
                    return
                chunk = os.read(self._read, 1 << 16)
                if not chunk:
                    return
                *lines, buffer = (buffer + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        finally:
            os.close(self._read)

    def end(self) -> End:
        """Wait for the child, or stop it where it hangs."""
        if self.hung:
            self._process.kill()
        code = self._process.wait()
        self._log.seek(0)
        log = self._log.read()[-20_000:].decode("utf-8", "replace")
        self._log.close()
        return End(code, self.hung, log)

    def stop(self) -> None:
        """Kill the child if it is still there."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _start(order: int, events: int, log: int, fresh: bool) -> Process:
    if _nursery is not None and _nursery.alive and not fresh:
        return _nursery.start(order, events, log)
    return subprocess.Popen(
        [sys.executable, "-m", "onnxproof.process.child", str(order), str(events)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(order, events),
        env=_environment(),
    )
