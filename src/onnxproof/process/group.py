"""Processes that a library starts for us, and that know nothing of ours: they end with this one, whoever ended it.

They are a group of processes. Its leader does nothing but wait for the end of its input, which comes with the end of whoever started it; then
it ends the group and removes the folder that was its.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onnxproof.process.supervisor import START
from onnxproof.system import SUPERVISES, end_own_group

# Seconds in which a process that was killed is gone, and writes no more.
DYING = 0.2


class Group:
    """Processes that end together; `folder` goes with them."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", START.format("group"), str(folder)]
        self._leader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) if SUPERVISES else None
        if self._leader is not None and self._leader.stdout is not None:
            self._leader.stdout.read(1)  # it leads

    @contextmanager
    def joined(self) -> Iterator[None]:
        """What is started within, and whatever that starts, is of the group. Ours is left only for so long: who ends all of it means us, too."""
        if self._leader is None:
            yield
            return
        own = os.getpgrp()
        with suppress(OSError):  # a session's leader has to stay: what it starts is left to itself
            os.setpgid(0, self._leader.pid)
        try:
            yield
        finally:
            if os.getpgrp() != own:
                os.setpgid(0, own)

    def end(self) -> None:
        """All of them, now."""
        if self._leader is not None:
            with suppress(ProcessLookupError):  # by ourselves too: somebody may have killed the leader
                os.killpg(self._leader.pid, signal.SIGKILL)
            self._leader.communicate()
            time.sleep(DYING)


def main() -> None:
    """Entry of the leader, which is given FOLDER."""
    os.setpgid(0, 0)
    print(flush=True)
    sys.stdin.buffer.read()
    end_own_group()
    time.sleep(DYING)
    shutil.rmtree(sys.argv[1], ignore_errors=True)
