"""What a run has measured, on disk as it comes: whoever was ended goes on from here. It is also the lock of the run's folder.

The file is only ever appended to. A record is the checksum of a frame and the frame (`process/orders.py`); what follows the first that
is torn or wrong is cut off. Stages that have ended well are heard again, the one that was under way goes on if it can (`Stage.goes_on`)
or begins anew, and so do those after it. All of it counts only for the same request about the same code, weights and file.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from onnxproof.errors import UserError
from onnxproof.files import JOURNAL, hold, sweep
from onnxproof.pipeline.events import Event, decode
from onnxproof.process.orders import HEADER, make_frame, write_all

SUM = 4
OPENED, BASED, BEGUN, HEARD, DIED, ENDED = b"o", b"m", b"b", b"s", b"x", b"e"


class Opened(msgspec.Struct, frozen=True):
    """Who writes, since when, and what was asked for."""

    request: str
    process: int
    since: str


@dataclass
class Heard:
    """What is known of a stage; it is `whole` where it ended, and nobody died in it."""

    events: list[Event] = field(default_factory=list)
    seconds: float | None = None
    died: bool = False

    @property
    def whole(self) -> bool:
        """Whether it need not be done again."""
        return self.seconds is not None and not self.died


@dataclass
class Past:
    """What a journal says."""

    opened: Opened | None = None
    basis: str | None = None
    stages: dict[str, Heard] = field(default_factory=dict)

    def take(self, kind: bytes, body: bytes) -> None:
        """The next record."""
        if kind == OPENED:
            self.opened = msgspec.msgpack.decode(body, type=Opened)
            return
        said: Any = msgspec.msgpack.decode(body) if kind not in (HEARD, DIED) else None
        if kind == BASED:
            if said != self.basis:
                self.stages.clear()
            self.basis = said
        elif kind == BEGUN:
            name, goes_on = said
            known = self.stages.get(name, Heard()).events if goes_on else []
            self._forget_from(name)
            self.stages[name] = Heard(known)
        elif self.stages:
            stage = self.stages[next(reversed(self.stages))]
            # What comes after a death was answered without what was lost in it.
            if kind == HEARD and not stage.died:
                stage.events.append(decode(body))
            elif kind == DIED:
                stage.died = True
            elif kind == ENDED:
                stage.seconds = said

    def _forget_from(self, name: str) -> None:
        """Stages are written in their order: what came after one depends on it."""
        names = list(self.stages)
        for later in names[names.index(name) :] if name in names else ():
            del self.stages[later]


def read_records(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """(Kind, body, where the next one begins), up to the first record that is not whole."""
    at = 0
    while len(data) >= at + SUM + HEADER.size:
        kind, length = HEADER.unpack_from(data, at + SUM)
        end = at + SUM + HEADER.size + length
        frame = data[at + SUM : end]
        if end > len(data) or zlib.crc32(frame) != int.from_bytes(data[at : at + SUM], "little"):
            return
        at = end
        yield kind, frame[HEADER.size :], at


class Journal:
    """The journal of one run. Where it cannot be written the run goes on without: `trouble` says why."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._folder: Path | None = None
        self._held = ExitStack()
        self._past = Past()
        self.trouble: str | None = None

    def open(self, folder: Path, request: str, *, resume: bool) -> None:
        """Have the folder to oneself, and read what an earlier run of the same request left, where that is asked for."""
        try:
            self._file = self._held.enter_context(hold(folder / JOURNAL))
        except OSError as error:
            self.trouble = f"{folder / JOURNAL} cannot be written: {error.strerror}"
            return
        past, end = _read(folder / JOURNAL)
        if self._file is None:
            self.close()
            who = f"process {past.opened.process} since {past.opened.since}" if past.opened else "another process"
            raise UserError(f"--out {folder} is in use by {who}: wait for it, or give this run a folder of its own")
        self._folder = folder
        sweep(folder)
        same = resume and past.opened is not None and past.opened.request == request
        self._past = past if same else Past()
        with suppress(OSError):
            os.ftruncate(self._file, end if same else 0)
        self._write(OPENED, Opened(request, os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S %Z")))

    def base(self, mark: str) -> None:
        """Say what all that follows is about; what was measured of something else is forgotten."""
        if mark != self._past.basis:
            self._past = Past()
        self._write(BASED, mark)

    def recall(self, stage: str) -> Heard:
        """What is known of a stage from an earlier run."""
        return self._past.stages.get(stage, Heard())

    def begin(self, stage: str, *, goes_on: bool) -> None:
        """A stage begins, or goes on; what is known of later ones counts no more."""
        self._past = Past()
        self._write(BEGUN, (stage, goes_on))

    def hear(self, event: Event) -> None:
        """Write an event down, at once: the death of this process does not undo it."""
        if not event.passing:
            self._write(HEARD, event)

    def note_death(self) -> None:
        """A child died, or the stage ended early: what it says is not what an undisturbed run says."""
        self._write(DIED)

    def end(self, seconds: float) -> None:
        """The stage has ended; from here on not even the machine's death undoes it."""
        self._write(ENDED, seconds)
        with suppress(OSError):
            if self._file is not None:
                os.fsync(self._file)

    def close(self) -> None:
        """Let others have the folder, tidy: a child that had to be killed may have been writing."""
        if self._file is not None and self._folder is not None:
            sweep(self._folder)
        self._file = None
        self._held.close()

    def _write(self, kind: bytes, value: Any = None) -> None:
        if self._file is None or self.trouble is not None:
            return
        frame = make_frame(kind, value)
        try:
            write_all(self._file, zlib.crc32(frame).to_bytes(SUM, "little") + frame)
        except OSError as error:  # what would come after half a record could not be read
            self.trouble = f"the journal cannot be written: {error.strerror}"


def _read(file: Path) -> tuple[Past, int]:
    past, end = Past(), 0
    try:
        for kind, body, after in read_records(file.read_bytes()):
            past.take(kind, body)
            end = after
    except (OSError, msgspec.MsgspecError, ValueError, TypeError):
        return Past(), 0  # of another release, or no journal at all
    return past, end
