"""The examples whose scores differ most, and whether rounding explains it: a metric may hide what a decision does not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxproof.data.source import Table
from onnxproof.quality.accumulate import SIDES
from onnxproof.quality.flips import Explainer
from onnxproof.quality.rows import Batch
from onnxproof.tensors.arrays import Array

# Examples of a shard that are examined.
EXAMINED = 4
# Units in the last place of an example's largest score below which a difference is rounding, whatever the model.
NOTABLE = 64.0
# Scores of one example up to which they are looked at.
LARGEST_ROW = 1_000_000


@dataclass(frozen=True)
class Far:
    """One example with a large difference."""

    apart: float
    row: int
    name: Any
    inputs: Table
    sides: Mapping[str, Array]


class Farthest:
    """The examples of a shard with the largest differences."""

    def __init__(self, batch: int | None) -> None:
        """`batch`: the one that the module fixes; it is filled with the same row."""
        self._far: list[Far] = []
        self._copies = batch or 1

    def see(self, batch: Batch, kept: Mapping[str, Array], apart: Array) -> None:
        """Look at the differences of a batch; a few rows of it may be kept. Most batches cost one maximum."""
        if kept["baseline"].dtype.kind != "f" or apart.size > LARGEST_ROW * batch.rows:
            return
        rows = apart.reshape(batch.rows, -1).max(axis=1, initial=0.0) if apart.ndim > 1 else apart
        least = self._far[-1].apart if len(self._far) == EXAMINED else 0.0
        if not batch.rows or not _notable(rows, kept["baseline"], int(rows.argmax()), least):
            return
        for row in np.argsort(-rows, kind="stable")[:EXAMINED].tolist():
            if _notable(rows, kept["baseline"], row, least):
                rows_alike = np.full(self._copies, row)
                inputs = {name: a[rows_alike] if a.ndim else a for name, a in batch.inputs.items()}
                sides = {side: kept[side][rows_alike] for side in SIDES}
                self._far.append(Far(float(rows[row]), batch.start + row, batch.name(row), inputs, sides))
        self._far = sorted(self._far, key=lambda far: -far.apart)[:EXAMINED]

    def examine(self, make: Callable[[], Explainer]) -> dict[str, dict[str, Any]]:
        """Row → how far apart the sides are, and how many times what rounding may do that is."""
        examined = ((far, make().times_rounding(far.inputs, far.sides)) for far in self._far)
        return {str(f.row): {"id": f.name, "difference": f.apart, "times_rounding": times} for f, times in examined}


def _notable(apart: Array, scores: Array, row: int, least: float) -> bool:
    unit = np.finfo(scores.dtype).eps * float(np.abs(scores[row]).max(initial=0.0))
    return bool(np.isfinite(apart[row]) and apart[row] > max(least, NOTABLE * unit))
