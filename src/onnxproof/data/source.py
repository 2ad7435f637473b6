"""What a source of rows is: fields, batches of rows, and a mark that changes with the data."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onnxproof.errors import InputError, OnnxproofError, condense, list_names
from onnxproof.tensors.arrays import Array, is_narrow_float

Table = dict[str, Array]
# What a row of a field is: one number, an array of its own, or something that is no input (a text, a date).
Kind = Literal["number", "vector", "other"]
# Rows that are read at once where only a few of them, or one field, are kept.
PASS_ROWS = 8192


class Source(ABC):
    """Rows that can be read in batches: whatever their number, only a few batches are in memory."""

    sequential = False
    """Whether rows can only be read from the start to the end, in this process."""
    columnar = True
    """Whether one field can be had without making all the others."""
    first = 0
    """The number of the first row, where these are some rows of more."""

    def __init__(self, label: str, fields: Mapping[str, Kind], rows: int | None, fingerprint: str) -> None:
        self.label = label
        """What messages call it: the flag, and what the user named."""
        self.fields = fields
        self.rows = rows
        """How many there are, where that is known."""
        self.fingerprint = fingerprint
        """Changes when the data change, as far as can be seen from outside."""
        self.constants: Table = {}
        """Single values that hold for every row."""
        self.classes: dict[str, tuple[str, ...]] = {}
        """The names of the classes of a field, where the data tell them."""

    def select(self, names: Iterable[str]) -> Source:
        """The same rows with these fields alone: others are not read."""
        chosen = copy(self)
        chosen.fields = {name: self.fields[name] for name in dict.fromkeys(names)}
        return chosen

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        """Batches of `size` rows (the last may be smaller) from `start` to `stop`."""
        try:
            yield from rechunk(
                take_window(self._read_tables(start, size), 0, None if stop is None else stop - start), size
            )
        except OnnxproofError:
            raise
        except Exception as error:  # a damaged file, a value that is not of its column's type
            raise refuse_source(self.label, error) from error

    @abstractmethod
    def _read_tables(self, start: int, size: int) -> Iterator[Table]:
        """Tables of any size (at best, a multiple of `size`) from row `start` on."""

    def take(self, places: Array) -> Table:
        """The rows with these numbers (some, ascending): one pass, in which nothing else is kept."""
        parts, at = [], int(places[0])
        for table in self.read(at, int(places[-1]) + 1, PASS_ROWS):
            here = places[(places >= at) & (places < at + count_rows(table))] - at
            at += count_rows(table)
            if len(here):
                parts.append({name: array[here] for name, array in table.items()})
        return join(parts)

    def column(self, name: str) -> Array:
        """All values of one field."""
        parts = [table[name] for table in self.select([name]).read(0, None, PASS_ROWS)]
        values = np.concatenate(parts) if parts else np.empty(0)
        if self.sequential:
            self.rows = len(values)
        return values

    def count(self) -> int:
        """How many rows there are, counted where nobody knows."""
        if self.rows is None:
            self.rows = sum(count_rows(table) for table in self.select(list(self.fields)[:1]).read(0, None, PASS_ROWS))
        return self.rows


def refuse_source(label: str, error: Exception) -> InputError:
    """What is said where a library cannot read what the user named."""
    return InputError(f"{label} cannot be read: {type(error).__name__}: {condense(error)}")


def check_names(names: Sequence[str], label: str) -> None:
    """A field is found by its name: two of one name are one too many."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"{label} has several fields of the name {list_names(twice)}: give every field a name of its own"
        )


def make_array(value: Any) -> Array:
    """An array of what the user's code or file gave: torch's tensors too, on any device and of any dtype."""
    if hasattr(value, "detach"):
        from onnxproof.tensors.conversion import to_numpy

        return to_numpy(value)
    return np.array(value) if isinstance(value, np.memmap) else np.asarray(value)  # rows of a file are read here


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether values of a dtype are numbers."""
    return dtype.kind in "fiub" or is_narrow_float(dtype)


def read_kinds(table: Table) -> dict[str, Kind]:
    """What the rows of each field are."""
    return {
        name: "vector" if array.ndim > 1 else "number" if is_numeric(array.dtype) else "other"
        for name, array in table.items()
    }


def count_rows(table: Table) -> int:
    """Rows of a table."""
    return next((len(array) for array in table.values()), 0)


def join(tables: Sequence[Table]) -> Table:
    """The rows of some tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([table[name] for table in tables]) for name in (tables[0] if tables else ())}


def take_window(tables: Iterable[Table], skip: int, count: int | None) -> Iterator[Table]:
    """`count` rows after the first `skip`."""
    left = count
    for table in tables:
        rows = count_rows(table)
        end = rows if left is None else min(rows, skip + left)
        if end > skip:
            yield {name: array[skip:end] for name, array in table.items()} if skip or end < rows else table
            left = None if left is None else left - (end - skip)
        skip = max(0, skip - rows)
        if left == 0:
            return


def rechunk(tables: Iterable[Table], size: int) -> Iterator[Table]:
    """The same rows in tables of `size` rows; only the last may be smaller."""
    held: list[Table] = []
    count = 0
    for table in tables:
        if not held and count_rows(table) == size:
            yield table
            continue
        held.append(table)
        count += count_rows(table)
        if count >= size:
            joined, full = join(held), count - count % size
            for first in range(0, full, size):
                yield {name: array[first : first + size] for name, array in joined.items()}
            held = [{name: array[full:] for name, array in joined.items()}] if full < count else []
            count -= full
    if count:
        yield join(held)


def fingerprint_files(*files: Path) -> str:
    """Name, size and time of some files."""
    digest = hashlib.blake2b(digest_size=12)
    for file in files:
        stat = file.stat()
        digest.update(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()


def fingerprint_values(table: Mapping[str, Any]) -> str:
    """A hash of all values of a table in memory."""
    digest = hashlib.blake2b(digest_size=12)
    for name, array in ((name, make_array(value)) for name, value in table.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        # The bytes of Python objects are addresses.
        digest.update(array.tobytes() if array.dtype.kind in "fiub" else repr(array.tolist()).encode())
    return digest.hexdigest()
