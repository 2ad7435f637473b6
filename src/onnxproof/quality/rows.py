"""Rows of a data set with the roles of their fields known: inputs, labels, ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.data import Table
from onnxproof.errors import InputError, listed
from onnxproof.findings import Finding, found
from onnxproof.quality.batches import length
from onnxproof.quality.fields import IDS, find_field, find_labels
from onnxproof.quality.sources import ArrowFolder, Source, open_source

if TYPE_CHECKING:
    from onnxproof.quality.engine import Engine

Array = NDArray[Any]


class Batch:
    """One batch, taken apart."""

    def __init__(self, start: int, inputs: Table, labels: Array, ids: Array | None, served: Table | None) -> None:
        self.start, self.inputs, self.labels, self.ids, self.served = start, inputs, labels, ids, served
        self.rows = len(labels)

    def name(self, row: int) -> Any:
        """The id of a row: the data's own, or its number."""
        if self.ids is None:
            return self.start + row
        value = self.ids[row].item()
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Rows:
    """A source with the roles of its fields known."""

    def __init__(self, source: Source, engine: Engine) -> None:
        self.source = source
        self._engine = engine
        settings, inputs = engine.settings, engine.examples
        self._file_labels = _labels_file(settings.labels)
        given = None if self._file_labels is not None else settings.labels
        self.labels = find_labels(source.fields, given, () if settings.preprocess else inputs)
        self.ids = find_field(source.fields, settings.ids, IDS, inputs, "--ids")
        self.dtypes: dict[str, str] = {}
        """The data's own dtypes, as the first batch had them."""
        if self._file_labels is not None and source.rows not in (None, len(self._file_labels)):
            raise InputError(
                f"--labels {settings.labels} has {len(self._file_labels)} rows and the data have {source.rows}"
            )

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None or self._file_labels is not None

    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, where the data tell them."""
        if self.labels is None or not isinstance(self.source, ArrowFolder):
            return ()
        return self.source.class_names(self.labels)

    def all_labels(self) -> Array | None:
        """Every label, where they can be had without reading everything."""
        if self._file_labels is not None:
            return self._file_labels
        return self.source.column(self.labels) if self.labels is not None else None

    def _labels_of(self, table: Table, at: int, count: int) -> Array:
        if self._file_labels is not None:
            return self._file_labels[at : at + count]
        return table[self.labels] if self.labels is not None else np.full(count, np.nan)

    def raw(self, table: Table) -> Table:
        """The fields that are neither labels nor ids."""
        return {name: array for name, array in table.items() if name not in (self.labels, self.ids)}

    def batches(self, start: int, size: int, stop: int | None = None) -> Iterator[Batch]:
        """Batches with inputs, labels and ids."""
        at = start
        for table in self.source.read(start, stop, size):
            count = length(table)
            labels = self._labels_of(table, at, count)
            raw = self.raw(table)
            processed = self._engine.preprocessing.training(raw)
            served = self._engine.preprocessing.serving(raw)
            self.dtypes = self.dtypes or {name: a.dtype.name for name, a in processed.items()}
            yield Batch(
                at,
                self._engine.to_inputs(processed),
                np.asarray(labels),
                table[self.ids] if self.ids is not None else None,
                self._engine.to_inputs(served) if served is not None else None,
            )
            at += count


def _labels_file(given: str | None) -> Array | None:
    """Labels in a file of their own."""
    if given is None or not given.endswith((".npy", ".npz", ".csv", ".parquet")) or not Path(given).is_file():
        return None
    source = open_source(given, "--labels")
    name = find_labels(source.fields, None, ()) or source.fields[0]
    return source.column(name)


def stacked(table: Table) -> Table:
    """Numeric columns of a table as one vector per row, in the order of the columns; a single array stays as it is."""
    vectors = {name: a for name, a in table.items() if a.ndim > 1}
    numbers = [a for a in table.values() if a.ndim == 1 and a.dtype.kind in "fiub"]
    if vectors or len(table) == 1 or not numbers:
        return table
    return {"X": np.stack(numbers, axis=1).astype(np.float32)}


def told_columns(table: Table) -> str:
    """Which columns of a table became the input, and which were left out."""
    if len(table) < 2:
        return ""
    taken = [name for name, a in table.items() if a.ndim == 1 and a.dtype.kind in "fiub"]
    left = [name for name in table if name not in taken]
    return f"; its columns are {listed(taken if len(taken) <= 24 else [*taken[:12], '…', *taken[-4:]])}" + (
        f", left out are {listed(left[:6])}" if left else ""
    )


def layout_finding(name: str, row: tuple[int, ...], expected: tuple[int | None, ...]) -> Finding | None:
    """Rows whose shape is not the model's: another rank, other sizes, or channels at the other end."""
    if _agrees(row, expected):
        return None
    wanted = [size if size is not None else "any" for size in expected]
    evidence = {"input": name, "rows": list(row), "expected": wanted}
    message = f"rows of {name} have the shape {list(row)}; the model takes {wanted}"
    if len(row) == 3 and _agrees((row[2], row[0], row[1]), expected):
        message += ": they are channels last (NHWC), the model is channels first (NCHW)"
    elif len(row) == 3 and _agrees((row[1], row[2], row[0]), expected):
        message += ": they are channels first (NCHW), the model is channels last (NHWC)"
    return found("OX608", message, evidence=evidence)


def _agrees(row: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(row) == len(expected) and all(e is None or e == r for r, e in zip(row, expected, strict=True))
