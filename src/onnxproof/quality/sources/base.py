"""What a source of rows is, and how a change of its data is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.data import Table

Array = NDArray[Any]


class Source(Protocol):
    """Rows that can be read in batches."""

    rows: int | None
    """How many there are, where that is known."""
    sequential: bool
    """Whether rows can only be read from the start to the end, in this process."""
    fields: tuple[str, ...]

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        """Batches of `size` rows (the last may be smaller) from `start` to `stop`."""

    def column(self, name: str) -> Array | None:
        """All values of one field; None where that would mean to read everything."""

    def fingerprint(self) -> str:
        """Changes when the data change, as far as can be seen from outside."""


def file_fingerprint(file: Path) -> str:
    """Name, size and time of a file."""
    stat = file.stat()
    return hashlib.blake2b(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode(), digest_size=12).hexdigest()


def values_fingerprint(table: Table) -> str:
    """A hash of all values of a table in memory."""
    digest = hashlib.blake2b(digest_size=12)
    for name, array in table.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data if array.dtype.kind in "fiub" else repr(array.tolist()).encode())
    return digest.hexdigest()
