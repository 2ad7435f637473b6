"""Questions to a process, one at a time, over its standard input and output: start it, ask, notice when it dies or hangs.

A frame, in either direction, is MAGIC, the length of the header, the length of the body, a header in JSON, and the body: raw bytes
one after the other, whose lengths stand in the header under `blobs`. The version of the protocol is part of MAGIC.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# candidates/serve.py has these two once more: it can import nothing from here.
MAGIC = b"oxp1"
PREFIX = struct.Struct(">4sIQ")
# Bytes of a header beyond which it is nobody's answer.
LONGEST = 1 << 28
# Seconds to leave by itself.
LEAVING = 5.0
# Characters of the log that are told.
SHOWN = 2000


class Lost(Exception):
    """The process is gone, and its answer with it. `how` says in what way, `log` what it printed last."""

    def __init__(self, how: str, log: str = "", signal_name: str | None = None) -> None:
        super().__init__(how)
        self.how, self.log, self.signal_name = how, log, signal_name


class Died(Lost):
    """It ended by itself or was killed."""


class Hung(Lost):
    """It said nothing for too long and was stopped."""


class Garbled(Lost):
    """What it said is no answer; it was stopped."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    header: Mapping[str, Any]
    blobs: Sequence[memoryview] = field(default=())


class Dialogue:
    """One process that answers questions. What it prints beside them goes to a log."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        # A file, since a pipe that nobody reads fills up and stops whoever prints.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment
            )
        except OSError:
            self._log.close()
            raise
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)  # a process that does not read must not hold us

    def ask(self, header: Mapping[str, Any], blobs: Sequence[memoryview] = (), *, silence: float) -> Answer:
        """The answer to one question; raises `Lost` where none comes, or nothing for so many seconds."""
        text = json.dumps({**header, "blobs": [blob.nbytes for blob in blobs]}).encode()
        self._send(PREFIX.pack(MAGIC, len(text), sum(blob.nbytes for blob in blobs)) + text, silence)
        for blob in blobs:
            self._send(blob, silence)
        return self._receive(silence)

    def close(self) -> None:
        """Stop it; who notices that nobody asks any more may tidy up first."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVING)
        with contextlib.suppress(OSError):
            self._process.kill()
        self._bury()

    def _send(self, data: bytes | memoryview, silence: float) -> None:
        left = memoryview(data)
        while left:
            if not select.select([], [self._to], [], silence)[1]:
                raise self._kill(Hung, f"took no question within {silence:g} s")
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._explain_death() from None

    def _receive(self, silence: float) -> Answer:
        prefix = self._read(PREFIX.size, silence)
        magic, size, body = PREFIX.unpack(prefix)
        if magic != MAGIC or size > LONGEST:
            raise self._kill(Garbled, f"said {bytes(prefix)!r} instead of an answer")
        try:
            header = json.loads(bytes(self._read(size, silence)))
            lengths = [int(length) for length in header["blobs"]]
        except (ValueError, KeyError, TypeError) as error:
            raise self._kill(Garbled, f"said something that is no answer ({error})") from None
        if sum(lengths) != body or min(lengths, default=0) < 0:
            raise self._kill(Garbled, f"announced {body} bytes and sent parts of {lengths}")
        return Answer(header, [self._read(length, silence) for length in lengths])

    def _read(self, count: int, silence: float) -> memoryview:
        data = memoryview(bytearray(count))
        left = data
        while left:
            if not select.select([self._from], [], [], silence)[0]:
                raise self._kill(Hung, f"gave no answer within {silence:g} s")
            got = os.readv(self._from, [left])
            if not got:
                raise self._explain_death()
            left = left[got:]
        return data

    def _explain_death(self) -> Died:
        """It closed its pipe: how it ended, where it ends at all."""
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
        code = self._process.wait()
        name = name_signal(code)
        return Died(f"was killed by {name}" if name else f"ended with exit code {code}", self._bury(), name)

    def _kill(self, kind: type[Lost], how: str) -> Lost:
        self._process.kill()
        return kind(how, self._bury())

    def _bury(self) -> str:
        """Bury it; the end of its log."""
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        if self._log.closed:
            return ""
        self._log.seek(0)
        with self._log as log:
            return log.read()[-SHOWN:].decode("utf-8", "replace").strip()


def name_signal(code: int) -> str | None:
    """SIGSEGV and the like; None where a process ended by itself."""
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
