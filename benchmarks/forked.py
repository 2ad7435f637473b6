"""Many small questions to native code, in processes that are forked with all of it loaded: a death or a hang costs one question."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

# Seconds without an answer after which a process counts as hung.
LONGEST = 120.0


def ask(work: Callable[[int], Any], count: int, together: int) -> Iterator[Any]:
    """What comes of each number, in their order: a plain value, or "crash" or "hang"."""
    number = 0
    with tempfile.TemporaryDirectory(prefix="onnxproof-asked-") as folder:
        log = Path(folder) / "log"
        while number < count:
            stop = min(count, number + together)
            how = _ask_some(work, range(number, stop), log)
            answers = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
            yield from answers
            number += len(answers)
            if number < stop:
                yield how
                number += 1


def _ask_some(work: Callable[[int], Any], numbers: range, log: Path) -> str:
    """Answers go to the log, a line each; how the process ended."""
    log.write_bytes(b"")
    pid = os.fork()
    if not pid:
        try:
            with log.open("ab", buffering=0) as stream:
                for number in numbers:
                    stream.write(msgspec.json.encode(work(number)) + b"\n")
        finally:
            os._exit(0)
    size, since = 0, time.monotonic()
    while not os.waitpid(pid, os.WNOHANG)[0]:
        time.sleep(0.02)
        if log.stat().st_size != size:
            size, since = log.stat().st_size, time.monotonic()
        elif time.monotonic() - since > LONGEST:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hang"
    return "crash"
