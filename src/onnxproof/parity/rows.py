"""Rows of a large batch: where they do not depend on each other, those on which the sides part most decide for all of them.

Both sides answer the whole batch and are compared on it. What costs is the truth and its legal roundings: they are asked for a few rows,
and for all of them only where these few leave something open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onnxproof.cases.plan import Inputs, make_case
from onnxproof.cases.supply import Supply
from onnxproof.errors import Rejected
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.slabs import measure_scale, to_float64
from onnxproof.tensors.arrays import Array, Arrays

# Rows that are tried for whether they depend on each other, and some of them.
TRIED, SOME = 6, (1, 4)
# How far float64 may carry a row that is computed beside others, over the scale of what stands around it.
ALIKE = 1e-9
# Rows that are worst in one way, of each output.
WORST = 3
# A batch is large from this many rows on for each that decides.
LARGE = 2


@dataclass(frozen=True)
class Part:
    """Some rows of a case."""

    rows: tuple[int, ...]
    inputs: Inputs
    baseline: Arrays
    candidate: Arrays


class Rows:
    """Chooses the rows of a batch that decide."""

    def __init__(self, supply: Supply, double: DoubleRunner) -> None:
        self._supply, self._double = supply, double
        batch, dynamic = supply.subject.batch, supply.subject.dynamic
        dims = {name: [dim for dim, size in sizes.items() if size == batch] for name, sizes in dynamic.items()}
        self._dims = {name: places[0] for name, places in dims.items() if len(places) == 1}

    def choose(self, inputs: Inputs, baseline: Arrays, candidate: Arrays) -> Part | None:
        """The first row, the last, and those on which the sides part most; None where all of them are to be asked."""
        counts = {inputs[name].shape[dim] for name, dim in self._dims.items()}
        if len(counts) != 1 or min(counts) < LARGE * (2 + WORST) or self._outputs is None:
            return None
        (count,) = counts
        if baseline.keys() != self._outputs.keys() or not all(
            baseline[name].shape == answer.shape and (dim is None or answer.shape[dim] == count)
            for name, answer in candidate.items()
            for dim in (self._outputs.get(name),)
        ):
            return None
        chosen = {0, count - 1}
        for name, dim in self._outputs.items():
            if dim is not None and name in candidate:
                chosen |= _find_worst(np.moveaxis(baseline[name], dim, 0), np.moveaxis(candidate[name], dim, 0))
        if LARGE * len(chosen) > count:
            return None
        rows, outputs = sorted(chosen), self._outputs
        return Part(
            tuple(rows), take(inputs, self._dims, rows), take(baseline, outputs, rows), take(candidate, outputs, rows)
        )

    @cached_property
    def _outputs(self) -> Mapping[str, int | None] | None:
        """Output → its dimension that counts rows (None: it has none); nothing where rows depend on each other."""
        batch = self._supply.subject.batch
        if batch is None or not self._dims:
            return None
        whole = self._supply.make_inputs(make_case({**self._supply.subject.sizes(), batch: TRIED}, "normal"))
        try:
            alone = self._double.run(take(whole, self._dims, SOME))
            beside = self._double.run(whole)
        except (Unavailable, Rejected, MemoryError):
            return None
        found: dict[str, int | None] = {}
        for name, answer in beside.items():
            few = alone.get(name)
            if few is None or few.ndim != answer.ndim:
                return None
            dims = [dim for dim, sizes in enumerate(zip(few.shape, answer.shape, strict=True)) if len({*sizes}) > 1]
            dim = dims[0] if dims else None
            # A number that values decide (of boxes that are kept) may change with the rows, and counts none.
            counted = dim is None or (few.shape[dim], answer.shape[dim]) == (len(SOME), TRIED)
            if len(dims) > 1 or not counted or not _is_same(few, take({name: answer}, {name: dim}, SOME)[name]):
                return None
            found[name] = dim
        return found


def take(arrays: Arrays, dims: Mapping[str, int | None], rows: Sequence[int]) -> dict[str, Array]:
    """These rows of what has rows."""
    return {
        name: array if (dim := dims.get(name)) is None else np.take(array, rows, axis=dim)
        for name, array in arrays.items()
    }


def _is_same(few: Array, answer: Array) -> bool:
    if few.shape != answer.shape or few.dtype != answer.dtype:
        return False
    if few.dtype.kind not in "fc":
        return np.array_equal(few, answer)
    a, b = to_float64(few), to_float64(answer)
    with np.errstate(invalid="ignore"):
        return bool(
            (np.isclose(a, b, rtol=0, atol=0, equal_nan=True) | (np.abs(a - b) <= ALIKE * measure_scale(b))).all()
        )


@np.errstate(all="ignore")
def _find_worst(baseline: Array, candidate: Array) -> set[int]:
    """Rows with the largest difference, in itself and relative to what stands around it, and those where NaN or infinities differ most.
    One after the other: an output may be large."""
    far = np.zeros((3, len(baseline)))
    for row, (b, c) in enumerate(zip(baseline, candidate, strict=True)):
        if b.dtype.kind not in "fc":
            far[0, row] = np.count_nonzero(b != c)
        elif b.size:
            wide, there = to_float64(b), to_float64(c)
            apart = np.abs(there - wide)
            finite = np.isfinite(apart)
            same = (wide == there) | (np.isnan(wide) & np.isnan(there))
            far[:, row] = (
                apart.max(initial=0.0, where=finite),
                (apart / measure_scale(wide)).max(initial=0.0, where=finite),
                np.count_nonzero(~finite & ~same),
            )
    return {int(row) for kind in far for row in np.argsort(-kind, kind="stable")[:WORST] if kind[row] > 0}
