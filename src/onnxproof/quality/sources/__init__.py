"""A data set as a stream of batches: whatever its size, only a few batches are in memory."""

from __future__ import annotations

from pathlib import Path

from onnxproof.cases.data import load_data
from onnxproof.errors import InputError
from onnxproof.quality.sources.arrays import ArraySource, read_npy, read_npz
from onnxproof.quality.sources.arrow import ArrowFolder, CsvSource, ParquetSource
from onnxproof.quality.sources.base import Source, file_fingerprint
from onnxproof.quality.sources.iterables import from_object

__all__ = ["ArraySource", "Source", "file_fingerprint", "open_source"]


def open_source(text: str, flag: str = "--data") -> Source:
    """The source that a user means."""
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
