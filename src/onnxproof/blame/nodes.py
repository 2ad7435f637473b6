"""Which node: every node is fed the true inputs, so that what it introduces is told from what it inherits.

The graph is evaluated in float64, node by node. Where a value of the graph has a counterpart (in the captured program, or in a fresh
export of it), the node's result is compared with it and then replaced by it: errors do not travel, and all culprits show at once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxproof.graph.evaluator import Evaluator, Stop
from onnxproof.parity.comparison import classify, to_plain
from onnxproof.parity.slabs import measure_scale, to_float64
from onnxproof.tensors.arrays import Array, Floats

Values = MutableMapping[str, Array]
# Introduced error above which a node is a suspect: float32 constants cost less.
WORTH_TELLING = 3e-7
# A little below float32's largest number, so that this one counts as infinite too.
LARGEST = 3.4e38
# Operators whose terms cancel: what they lose is little beside the terms, however small the result is.
SUMS = {"Add", "Sub", "Sum", "Mean", "ReduceSum", "ReduceMean", "MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"}
# Elements that are compared at once.
SLAB = 1 << 20


@dataclass(frozen=True)
class Introduced:
    """What one node adds to the error of the value it is compared by, and both values where it is worst."""

    node: str
    op: str
    value: str
    error: float
    expected: Any = None
    got: Any = None


def follow(
    evaluator: Evaluator,
    inputs: Mapping[str, Array],
    truth: Mapping[str, Array],
    values: Values | None = None,
    *,
    replace: bool = True,
    keep: Container[str] = (),
) -> list[Introduced]:
    """Evaluate a graph: what each node introduces when true values take the place of its results.

    Results that have no true value are put into `values`, if it is given; with `replace` off all of them.

    A node that raises on true inputs introduces an infinite error; so does an output of the graph in another shape. With
    `replace` off errors travel as they do in the graph (for values in `keep` always).
    """
    found: list[Introduced] = []
    # What nobody takes is nobody's error.
    taken = {name for step in evaluator.steps for name in step.takes} | set(evaluator.outputs)

    def onward(stop: Stop, results: Sequence[Any]) -> list[Any]:
        went = [compared(stop, name, result) for name, result in zip(stop.values, results, strict=False)]
        if stop.op == "TopK" and stop.values[0] in truth and np.array_equal(results[0], truth[stop.values[0]]):
            # Equal values are in any order: where the values are right, so are their places.
            found[:] = [one for one in found if one.value != stop.values[1]]
        return went

    def compared(stop: Stop, name: str, result: Any) -> Any:
        if not isinstance(result, np.ndarray | np.generic):
            return result
        array = np.asarray(result)
        if name and values is not None and (not replace or name not in truth or name not in taken):
            values[name] = array
        if name in truth and name in taken:
            true = truth[name]
            own = _measure_error(stop, name, array, true, name in evaluator.outputs)
            found.append(own)
            # The same numbers in another shape go on as they are: the next node was written for that, and for the graph's dtype.
            if replace and name not in keep and (array.shape == true.shape or own.error > WORTH_TELLING):
                alike = {array.dtype.kind, true.dtype.kind} <= set("fiuc")
                return true.astype(array.dtype, copy=False) if alike else true
        return result

    def rescue(stop: Stop, error: Exception) -> list[Any] | None:
        found.append(Introduced(stop.node, stop.op, stop.values[0], np.inf))
        # A graph that is left to itself ends here.
        known = replace and all(name in truth for name in stop.values)
        return [truth[name] for name in stop.values] if known else None

    evaluator.run(inputs, onward, rescue)
    return found


def _measure_error(stop: Stop, name: str, result: Array, true: Array, output: bool) -> Introduced:
    if output and result.shape != true.shape:
        return Introduced(stop.node, stop.op, name, np.inf)
    error, place = _locate_worst(result, true)
    if place is not None and stop.op in SUMS and error < np.inf:
        gap = np.abs(to_float64(result) - to_float64(true)).max(initial=0.0, where=np.isfinite(true))
        error = 0.0 if gap <= WORTH_TELLING / 10 * _find_largest(stop.arguments) else error
    if place is None or error <= WORTH_TELLING:
        return Introduced(stop.node, stop.op, name, error)
    return Introduced(stop.node, stop.op, name, error, to_plain(true.ravel()[place]), to_plain(result.ravel()[place]))


def _find_largest(arguments: Sequence[Any]) -> float:
    floats = [a for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    return max((float(np.abs(a).max(initial=0.0, where=np.isfinite(a))) for a in floats), default=0.0)


def measure_distance(value: Array, true: Array) -> float:
    """Largest difference relative to the local scale; infinite for another shape or another pattern of NaN and infinities."""
    return _locate_worst(value, true)[0]


def _locate_worst(value: Array, true: Array) -> tuple[float, int | None]:
    """The distance, and the flat place of the worst element."""
    if value.shape != true.shape:
        # The same numbers in another shape are no error of an inner value; an output's shape is asked about before.
        return (np.inf, None) if value.size != true.size else _locate_worst(value.reshape(true.shape), true)
    if not true.size or np.array_equal(value, true):  # most nodes do exactly what they should
        return 0.0, None
    if true.dtype.kind not in "fc" or value.dtype.kind not in "fc":
        differing = np.flatnonzero(value != true)
        return (1.0, int(differing[0])) if differing.size else (0.0, None)
    worst, place, start = 0.0, 0, 0
    with np.errstate(all="ignore"):
        for v, t in _cut_slabs(value, true):
            wide_v, wide_t = _overflow(to_float64(v)), _overflow(to_float64(t))
            odd = classify(wide_v) != classify(wide_t)
            if odd.any():
                return np.inf, start + int(odd.argmax())
            difference = np.where(np.isfinite(wide_t), np.abs(wide_v - wide_t), 0.0) / measure_scale(wide_t)
            here = int(difference.argmax())
            if difference.ravel()[here] > worst:
                worst, place = float(difference.ravel()[here]), start + here
            start += difference.size
    return worst, place


def _overflow(values: Floats) -> Floats:
    """What float32 cannot hold is infinite there; its largest number stands for infinity too (nan_to_num makes it so)."""
    beyond = np.abs(values) > LARGEST
    return np.where(beyond, np.copysign(np.inf, values), values) if beyond.any() else values


def _cut_slabs(value: Array, true: Array) -> Iterator[tuple[Array, Array]]:
    """Whole rows, about a million elements at a time: comparing must not need several copies of a large value."""
    if true.size <= SLAB or true.ndim < 2:
        yield value, true
        return
    rows_v, rows_t = value.reshape(-1, value.shape[-1]), true.reshape(-1, true.shape[-1])
    step = max(1, SLAB // max(1, rows_t.shape[1]))
    for i in range(0, len(rows_t), step):
        yield rows_v[i : i + step], rows_t[i : i + step]


def find_worst(found: Iterable[Introduced]) -> float:
    """The largest error."""
    return max((one.error for one in found), default=0.0)
