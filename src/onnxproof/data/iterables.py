"""The user's own objects: arrays, torch loaders and data sets, any iterable of batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.data.arrays import ArraySource
from onnxproof.data.source import (
    Source,
    Table,
    check_names,
    fingerprint_files,
    fingerprint_values,
    make_array,
    read_kinds,
    take_window,
)
from onnxproof.errors import InputError, condense

END = object()
# Rows of a torch data set that are one batch.
LOADED_ROWS = 256


class IterableSource(Source):
    """A `DataLoader` or any iterable of batches, made anew for every pass."""

    sequential = True
    columnar = False

    def __init__(self, label: str, text: str, make: Callable[[], Any]) -> None:
        self.label, self._make = label, make
        first = next(self._read_batches(), None)
        if first is None:
            raise InputError(f"{label} gives no batch")
        # Only the first batch is seen: a loader that shuffles is never resumed, one whose later rows alone change is.
        file = Path(text.rpartition(":")[0])
        stamp = fingerprint_files(file) if file.is_file() else str(time.time_ns())  # one in memory is never resumed
        super().__init__(label, read_kinds(first), _count_rows(make()), f"{text} {stamp} {fingerprint_values(first)}")

    def _read_batches(self) -> Iterator[Table]:
        batches = _call(lambda: iter(self._make()), self.label)
        while (batch := _call(lambda: next(batches, END), self.label)) is not END:
            yield make_table(batch)

    def _read_tables(self, start: int, size: int) -> Iterator[Table]:
        return take_window(({name: table[name] for name in self.fields} for table in self._read_batches()), start, None)


def _call(function: Callable[[], Any], label: str) -> Any:
    try:
        return function()
    except Exception as error:  # the user's own code
        raise InputError(f"{label} raised {type(error).__name__}: {condense(error)}") from error


def _count_rows(value: Any) -> int | None:
    """Rows of a loader, where its data set tells."""
    try:
        return len(value.dataset)
    except (AttributeError, TypeError):
        return None


def make_table(batch: Any) -> Table:
    """One batch of a loader: a mapping, (inputs, labels), or an array. A single example becomes a batch of one."""
    if isinstance(batch, (tuple, list)) and len(batch) == 2 and isinstance(batch[0], Mapping):
        batch = {**batch[0], "labels": batch[1]}
    elif isinstance(batch, (tuple, list)) and batch and hasattr(batch[0], "shape"):
        batch = _name_arrays(batch)
    elif not isinstance(batch, Mapping):
        return {"X": make_array(batch)}
    table = {str(name): make_array(value) for name, value in batch.items()}
    return {n: a[None] for n, a in table.items()} if any(a.ndim == 0 for a in table.values()) else table


def _name_arrays(arrays: Any) -> dict[str, Any]:
    """Arrays without names: the inputs, or the input and its labels where there are two."""
    names = ["X", "labels"] if len(arrays) == 2 else ["X", *(f"X{i}" for i in range(1, len(arrays)))]
    return dict(zip(names, arrays, strict=True))


def open_object(value: Any, text: str, label: str, fingerprint: str | None = None) -> Source:
    """The source that an object is: arrays, batches, a torch data set or loader, or a function that returns one."""
    from torch.utils.data import DataLoader, Dataset

    called = callable(value) and not hasattr(value, "__iter__") and not isinstance(value, Dataset)
    made = _call(value, label) if called else value
    arrays = _collect_arrays(made, label)
    if arrays:
        return ArraySource(arrays, label, fingerprint or f"{text} {fingerprint_values(arrays)}")
    if isinstance(made, Dataset):
        made = DataLoader(made, batch_size=LOADED_ROWS)
    if not isinstance(made, Iterable):
        raise InputError(f"{label} is a {type(made).__name__}; expected arrays, batches or a torch data set")
    once = iter(made) is made  # an iterator is spent after one pass
    if once and not called:
        raise InputError(f"{label} is an iterator, which can be read once: give a function that returns it")
    return IterableSource(label, text, value if once else lambda: made)


def _collect_arrays(value: Any, label: str) -> dict[str, Any]:
    """Arrays that are all of the data, each with a row per example; none where it comes in batches."""
    named: dict[str, Any] = {}
    if isinstance(value, Mapping) or (hasattr(value, "columns") and hasattr(value, "items")):  # a data frame
        check_names([str(name) for name, _ in value.items()], label)
        named = {str(name): part for name, part in value.items()}
    elif hasattr(value, "shape"):
        named = {"X": value}
    elif isinstance(value, tuple) or (isinstance(value, list) and len(value) == 2):
        named = _name_arrays(value) if value and all(hasattr(part, "shape") for part in value) else {}
    return {name: part if hasattr(part, "detach") else np.asarray(part) for name, part in named.items()}
