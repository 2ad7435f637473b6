"""Files that appear whole or not at all, and what is left of those whose writer was killed.

Whatever is written for others to read goes through here: first under a name of its own in the same folder, then in its place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from onnxproof.errors import NotWritten
from onnxproof.system import lock

# The end of a file's name until it is whole.
PARTIAL = ".partial"
# The file by which a run has its folder to itself.
JOURNAL = ".journal"
# How folders begin that go with the process that made them, and seconds after which one that nobody holds is left over.
SCRATCH, FORGOTTEN = "onnxproof-run-", 60.0
# Seconds to wait for whoever tidies up after a run that was killed.
TIDYING = 3.0


@contextmanager
def replacing(path: str | Path, *, lasting: bool = True) -> Iterator[Path]:
    """A file to write to, which then takes the place of `path`; where that fails, nothing has changed but that `NotWritten` is raised.

    What is written beside it comes along, and before it: a file that is to bring others is not there meanwhile. What is not
    `lasting` survives the death of this process, but not the machine's.
    """
    try:
        # A link stays one; a device or a pipe takes what comes, and nothing may take its place.
        place = Path(path).resolve()
        if place.exists() and not place.is_file():
            yield place
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        making = place.with_name(f".{token_hex(6)}{PARTIAL}")
        making.mkdir()
        try:
            yield making / place.name
            others = [file for file in making.iterdir() if file.name != place.name]
            if others:
                place.unlink(missing_ok=True)
            for file in (*others, making / place.name):
                settle(file, place.with_name(file.name), lasting=lasting)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror or error}") from error


def settle(half: Path, place: Path, *, lasting: bool = True) -> None:
    """Put a file that is complete in its place, for good."""
    if place.is_file():
        shutil.copymode(place, half)
    if lasting:
        sync(half)
    half.replace(place)
    if lasting:
        sync(place.parent)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file; text as UTF-8, and what has no place in that as question marks."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with replacing(path) as half:
        half.write_bytes(data)


def sync(path: Path) -> None:
    """Have the system write down what it holds of a file or a folder; not every system can do so with folders."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold(file: Path) -> Iterator[int | None]:
    """Have a file to oneself: its number, None where another has it. One that cannot be opened is an `OSError`."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    try:
        patience = time.monotonic() + TIDYING
        while (mine := lock(descriptor)) is False and time.monotonic() < patience:
            time.sleep(0.05)
        yield None if mine is False else descriptor
    finally:
        os.close(descriptor)


def tidy_after(scratch: str, out: str) -> None:
    """Remove what a run left that was killed; another one may have begun in its folder."""
    shutil.rmtree(scratch, ignore_errors=True)
    with suppress(OSError):
        if out and (Path(out) / JOURNAL).is_file():
            with hold(Path(out) / JOURNAL) as held:
                if held is not None:
                    sweep(Path(out))


def find_temporary(longest: int) -> Path:
    """The folder for what is temporary, in a child the one that its run's own is in; /tmp where its name is too long."""
    place = Path(tempfile.gettempdir())
    place = place.parent if place.name.startswith(SCRATCH) else place
    return place if len(str(place)) <= longest else Path("/tmp")


@contextmanager
def make_scratch(place: Path | None = None) -> Iterator[Path]:
    """A folder that goes with this process; those of processes that were killed go now."""
    place = place or Path(tempfile.gettempdir())
    for left in place.glob(f"{SCRATCH}*"):
        with suppress(OSError):
            old = time.time() - left.stat().st_mtime > FORGOTTEN
            held = _hold_folder(left) if old else None
            if held is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(held)
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place))
    held = _hold_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def _hold_folder(folder: Path) -> int | None:
    """A lock on a folder; None where another has it, or the system has no such locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    if lock(descriptor) is True:
        return descriptor
    os.close(descriptor)
    return None


def sweep(folder: Path) -> None:
    """Remove what writers left that were killed; for whoever has the folder to itself, but for folders in it that are another run's."""
    with suppress(OSError):
        for half in folder.rglob(f".*{PARTIAL}"):
            inner = list(half.parents)[: list(half.parents).index(folder)]
            if any((one / JOURNAL).exists() for one in inner):
                continue
            with suppress(OSError):
                shutil.rmtree(half) if half.is_dir() else half.unlink()
