"""The parent's side: start a child, read its events, notice when it dies or hangs."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Event = Mapping[str, Any]


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


class Child:
    """One child process at work on one order."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        read, write = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed in end(): it lives as long as the child
        self._process = subprocess.Popen(
            [sys.executable, "-m", "onnxproof.worker.child", str(write)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(write,),
            # One hash seed for all children: a TARGET that iterates over sets must build the same model in each.
            env={"PYTHONHASHSEED": "0", **os.environ},
        )
        os.close(write)
        self._read = read
        self.hung = False
        assert self._process.stdin is not None  # it was asked for
        try:
            self._process.stdin.write(pickle.dumps(dict(order)))
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # the child died at once; its end says why

    def events(self, limit: float) -> Iterator[Event]:
        """Events as they come; the child is stopped when nothing comes for `limit` seconds."""
        buffer = b""
        deadline = time.monotonic() + limit
        try:
            while True:
                ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
                if not ready:
                    self.hung = True
                    return
                chunk = os.read(self._read, 1 << 16)
                if not chunk:
                    return
                deadline = time.monotonic() + limit
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
