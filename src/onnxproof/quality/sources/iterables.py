"""The user's own objects: torch loaders and data sets, any iterable of batches, arrays in a Python file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.cases.data import Table
from onnxproof.errors import InputError
from onnxproof.quality.batches import rechunk, window
from onnxproof.quality.sources.arrays import ArraySource
from onnxproof.quality.sources.base import Array, Source, file_fingerprint, values_fingerprint

END = object()


class IterableSource:
    """A `DataLoader` or any iterable of batches, made anew for every pass."""

    sequential = True

    def __init__(self, text: str, make: Any) -> None:
        self._text = text
        self._make = make
        self.rows: int | None = _known_length(make())
        first = next(iter(self._tables()), None)
        if first is None:
            raise InputError(f"--data {text} gives no batch")
        self.fields = tuple(first)
        self._first = values_fingerprint(first)

    def _tables(self) -> Iterator[Table]:
        batches = iter(self._make())
        while True:
            try:
                batch = next(batches, END)
            except Exception as error:  # the user's own code
                raise InputError(f"--data {self._text} raised {type(error).__name__}: {error}") from error
            if batch is END:
                return
            yield as_table(batch)

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        yield from rechunk(window(self._tables(), start, None if stop is None else stop - start), size)

    def column(self, name: str) -> Array | None:
        return None

    def fingerprint(self) -> str:
        # Only the first batch is seen: a loader that shuffles is never resumed, one whose later rows alone change is.
        file = Path(self._text.rpartition(":")[0])
        stamp = (
            file_fingerprint(file) if file.is_file() else str(time.time_ns())
        )  # an object in memory is never resumed
        return f"{self._text} {stamp} {self._first}"


def _known_length(value: Any) -> int | None:
    try:
        return len(value.dataset)
    except (AttributeError, TypeError):
        return None


def as_table(batch: Any) -> Table:
    """One batch of a loader: a mapping, (inputs, labels), or an array. A single example becomes a batch of one."""
    if isinstance(batch, Mapping):
        table = {str(name): np.asarray(value) for name, value in batch.items()}
        return {n: a[None] for n, a in table.items()} if any(a.ndim == 0 for a in table.values()) else table
    if isinstance(batch, (tuple, list)) and len(batch) == 2 and np.ndim(batch[1]) == 0 and hasattr(batch[0], "shape"):
        return {"X": np.asarray(batch[0])[None], "labels": np.asarray(batch[1])[None]}
    if isinstance(batch, (tuple, list)) and batch and hasattr(batch[0], "shape"):
        names = ["X", "labels"] if len(batch) == 2 else ["X", *(f"X{i}" for i in range(1, len(batch)))]
        return {name: np.atleast_1d(np.asarray(value)) for name, value in zip(names, batch, strict=True)}
    if isinstance(batch, (tuple, list)) and len(batch) == 2 and isinstance(batch[0], Mapping):
        return {**as_table(batch[0]), "labels": np.atleast_1d(np.asarray(batch[1]))}
    return {"X": np.asarray(batch)}


def from_object(text: str) -> Source:
    from onnxproof.subject.subject import load_target

    value, _ = load_target(text)
    return from_value(value, text)


def from_value(value: Any, text: str) -> Source:
    """The source that an object is: arrays, batches, a torch data set or loader, or a function that returns one."""
    made = value() if callable(value) and not hasattr(value, "__iter__") and not _is_dataset(value) else value
    if isinstance(made, Mapping) or hasattr(made, "shape") or _pair_of_arrays(made):
        table = as_table(made)
        return ArraySource(table, f"{text} {values_fingerprint(table)}")
    if _is_dataset(made):
        made = _loader(made)
        return IterableSource(text, lambda: made)
    if not isinstance(made, Iterable):
        raise InputError(f"--data {text} is a {type(made).__name__}; expected arrays, batches or a torch data set")
    if iter(made) is made:  # an iterator is spent after one pass
        if value is made:
            raise InputError(f"--data {text} is an iterator, which can be read once: give a function that returns it")
        return IterableSource(text, value)
    return IterableSource(text, lambda: made)


def _is_dataset(value: Any) -> bool:
    from torch.utils.data import Dataset

    return isinstance(value, Dataset)


def _loader(dataset: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=256)


def _pair_of_arrays(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(hasattr(part, "shape") for part in value)
