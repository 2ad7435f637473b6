"""Rows of a data set as the two sides take them: inputs, labels, ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxproof.data.examples import Examples
from onnxproof.data.source import Source, Table, count_rows, read_kinds
from onnxproof.findings import Finding, found
from onnxproof.tensors.arrays import Array

if TYPE_CHECKING:
    from onnxproof.quality.engine import Engine


@dataclass(frozen=True)
class Batch:
    """One batch, taken apart."""

    start: int
    inputs: Table
    labels: Array
    ids: Array | None
    served: Table | None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.labels)

    def name(self, row: int) -> Any:
        """The id of a row: the data's own, or its number."""
        if self.ids is None:
            return self.start + row
        value = self.ids[row].item()
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Rows(Examples):
    """Examples in batches, prepared as the two sides take them."""

    def __init__(self, source: Source, engine: Engine, labels: str | None) -> None:
        settings = engine.settings
        super().__init__(source, engine.examples, labels, settings.ids, raw=settings.preprocess is not None)
        self._engine = engine
        self.dtypes: dict[str, str] = {}
        """The data's own dtypes, as the first batch had them."""

    def all_labels(self) -> Array | None:
        """Every label, where they can be had without reading everything."""
        return self.read_labels() if self.source.columnar or self._file_labels is not None else None

    def batches(self, start: int, size: int, stop: int | None = None) -> Iterator[Batch]:
        """Batches with inputs, labels and ids."""
        at, preprocessing = start, self._engine.preprocessing
        for table in self.source.read(start, stop, size):
            raw = self.raw(table)
            processed, served = preprocessing.training(raw), preprocessing.serving(raw)
            self.dtypes = self.dtypes or {name: a.dtype.name for name, a in processed.items()}
            yield Batch(
                at,
                self.to_inputs(processed),
                np.asarray(self.labels_of(table, at, count_rows(table))),
                table[self.ids] if self.ids is not None else None,
                self.to_inputs(served) if served is not None else None,
            )
            at += count_rows(table)

    def to_inputs(self, table: Table) -> Table:
        inputs = super().to_inputs(table)
        own = table.keys() <= self.columns.keys()  # not what preprocessing made of them
        self._engine.check_layout(inputs, self.columns if own else read_kinds(table))
        return inputs


def judge_layout(name: str, row: tuple[int, ...], expected: tuple[int | None, ...]) -> Finding | None:
    """Rows whose shape is not the model's: another rank, other sizes, or channels at the other end."""
    if _agrees(row, expected):
        return None
    wanted = [size if size is not None else "any" for size in expected]
    message = f"rows of {name} have the shape {list(row)}; the model takes {wanted}"
    if len(row) == 3 and _agrees((row[2], row[0], row[1]), expected):
        message += ": they are channels last (NHWC), the model is channels first (NCHW)"
    elif len(row) == 3 and _agrees((row[1], row[2], row[0]), expected):
        message += ": they are channels first (NCHW), the model is channels last (NHWC)"
    return found("OX608", message, evidence={"input": name, "rows": list(row), "expected": wanted})


def _agrees(row: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(row) == len(expected) and all(e is None or e == r for r, e in zip(row, expected, strict=True))
