"""A data set as a stream of batches: whatever its size, only a few batches are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onnxproof.cases.data import load_data
from onnxproof.errors import InputError
from onnxproof.quality.sources.arrays import ArraySource, read_npy, read_npz
from onnxproof.quality.sources.arrow import ArrowFolder, CsvSource, ParquetSource
from onnxproof.quality.sources.base import Source, file_fingerprint
from onnxproof.quality.sources.iterables import from_object, from_value

__all__ = ["MEMORY", "ArraySource", "ArrowFolder", "Source", "file_fingerprint", "held", "open_source"]


MEMORY = "memory:"
_held: dict[str, Any] = {}


@contextmanager
def held(value: Any) -> Iterator[str]:
    """A name under which this process opens an object of the caller's; a text stands for itself."""
    if isinstance(value, str):
        yield value
        return
    name = f"{MEMORY}{type(value).__name__}-{id(value)}"
    _held[name] = value
    try:
        yield name
    finally:
        del _held[name]


def open_source(text: str, flag: str = "--data") -> Source:
    """The source that a user means."""
    if text in _held:
        return from_value(_held[text], text)
    if text.startswith(MEMORY):
        raise InputError(
            f"{flag}: an object in memory is read in this process only; give a file or file.py:name instead"
        )
    path, colon, _ = text.rpartition(":")
    if colon and path.endswith(".py"):
        return from_object(text)
    file = Path(text)
    if file.is_dir():
        return ArrowFolder(file, flag)
    if not file.is_file():
        raise InputError(f"{flag}: there is no file {text}")
    try:
        return _from_file(file)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{flag} {text} cannot be read: {type(error).__name__}: {error}") from error


def _from_file(file: Path) -> Source:
    if file.suffix == ".npz":
        return ArraySource(read_npz(file), file_fingerprint(file))
    if file.suffix == ".npy":
        return ArraySource({"X": read_npy(file)}, file_fingerprint(file))
    if file.suffix == ".parquet":
        return ParquetSource(file)
    if file.suffix == ".csv":
        return CsvSource(file)
    return ArraySource(dict(load_data(str(file))), file_fingerprint(file))
