"""The examples whose scores differ most, and whether rounding explains it: a metric may hide what a decision does not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.data import Table
from onnxproof.quality.flips import ULPS, Explainer
from onnxproof.quality.rows import Batch

Array = NDArray[Any]
EXAMINED = 4
"""Examples of a shard that are examined."""
LARGEST_ROW = 100_000
"""Scores of one example up to which they are looked at."""


@dataclass(frozen=True)
class Far:
    """One example with a large difference."""

    apart: float
    row: int
    name: Any
    inputs: Table
    sides: Mapping[str, Array]


class Farthest:
    """The examples of a shard with the largest differences, relative to their own scores."""

    def __init__(self) -> None:
        self._far: list[Far] = []

    def see(self, batch: Batch, kept: Mapping[str, Array]) -> None:
        """Look at a batch; a few rows of it may be kept."""
        baseline, candidate = (kept[side].reshape(batch.rows, -1) for side in ("baseline", "candidate"))
        if baseline.dtype.kind != "f" or baseline.shape[1] > LARGEST_ROW or not baseline.size:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(candidate.astype(np.float64) - baseline).max(axis=1)
            scale = np.abs(baseline).max(axis=1).astype(np.float64)
            excess = np.where(np.isfinite(apart), apart - ULPS * np.finfo(baseline.dtype).eps * scale, 0.0)
        for row in np.argsort(-excess, kind="stable")[:EXAMINED].tolist():
            if excess[row] > 0 and np.isfinite(excess[row]):
                inputs = {name: a[row : row + 1].copy() if a.ndim else a for name, a in batch.inputs.items()}
                sides = {"baseline": kept["baseline"][row : row + 1], "candidate": kept["candidate"][row : row + 1]}
                self._far.append(Far(float(apart[row]), batch.start + row, batch.name(row), inputs, sides))
        self._far = sorted(self._far, key=lambda far: -far.apart)[:EXAMINED]

    def examine(self, explainer: Explainer, fixed: int | None) -> dict[str, dict[str, Any]]:
        """Row → how far apart the sides are, and how many times what rounding may do that is."""
        return {
            str(far.row): {"id": far.name, "difference": far.apart, "times_rounding": _times(far, explainer, fixed)}
            for far in self._far
        }


def _times(far: Far, explainer: Explainer, fixed: int | None) -> float | None:
    """A batch that the module fixes is filled with the same row."""
    if fixed is None:
        return explainer.times_rounding(far.inputs, far.sides)
    filled = {name: np.repeat(a, fixed, axis=0) if a.ndim else a for name, a in far.inputs.items()}
    return explainer.times_rounding(filled, {side: np.repeat(a, fixed, axis=0) for side, a in far.sides.items()})
