"""What can arise at all: the range of every value of a graph, from those of its inputs.

Nothing is negative after a ReLU, a softmax stays within 0 and 1. A range that is not known is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from onnxproof.graph.evaluator import Evaluator, Step
from onnxproof.request.specs import Range
from onnxproof.tensors.arrays import Array, Arrays

OPEN = Range(-np.inf, np.inf)
DECIDING = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
# Operators that only move values, or choose among them.
MOVES = {
    *(
        "Identity",
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Expand",
        "Slice",
        "Gather",
        "Split",
        "Tile",
    ),
    *(
        "GatherElements",
        "GatherND",
        "ReduceMax",
        "ReduceMin",
        "ReduceMean",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
    ),
    *("DepthToSpace", "SpaceToDepth", "TopK", "Dropout"),
}
# Operators whose results lie within fixed ends.
FIXED = {
    **dict.fromkeys(("Sigmoid", "HardSigmoid", "Softmax"), Range(0.0, 1.0)),
    **dict.fromkeys(("Tanh", "Erf", "Sin", "Cos", "Sign"), Range(-1.0, 1.0)),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare", "Softplus"), Range(0.0, np.inf)),
    "LogSoftmax": Range(-np.inf, 0.0),
}
Ends = Callable[[Range], tuple[float, float]]
# Operators that never fall: the ends of the range go through them.
RISING: dict[str, Callable[[float], float]] = {
    "Relu": lambda x: max(x, 0.0),
    "Exp": lambda x: float(np.exp(np.float64(x))),
    "Sqrt": lambda x: float(np.sqrt(max(x, 0.0))),
    "Log": lambda x: float(np.log(np.float64(max(x, 0.0)))),
    "Atan": lambda x: float(np.arctan(x)),
    "Floor": lambda x: float(np.floor(x)),
    "Ceil": lambda x: float(np.ceil(x)),
    "Round": lambda x: float(np.rint(x)),
    "Cast": lambda x: x,
}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


def bound_values(evaluator: Evaluator, inputs: Mapping[str, Range], values: Arrays) -> dict[str, Range]:
    """Value → its range; `values` has those that do not depend on what the inputs hold."""
    known: dict[str, Range] = dict(inputs)

    def read(name: str) -> Range:
        if name in known:
            return known[name]
        stored = evaluator.stored.get(name)
        return _observe(stored if stored is not None else values.get(name)) if name not in moved else OPEN

    moved, deciding = set(evaluator.inputs), dict[str, Step]()
    with np.errstate(all="ignore"):
        for step in evaluator.steps:
            if not any(name in moved for name in step.takes):
                continue
            moved.update(step.gives)
            # The rest of what these take are axes and shapes.
            names = step.node.input[:1] if step.op in MOVES else step.node.input
            taken = [read(name) for name in names]
            if step.op == "Where":
                taken = _choose(step, taken, deciding, read)
            elif step.op in DECIDING and len(step.node.input) == 2:
                deciding[step.node.output[0]] = step
            found = _bound(step, taken, evaluator, values)
            known.update(dict.fromkeys(step.gives, found))
    return known


def _choose(
    step: Step, taken: Sequence[Range], deciding: Mapping[str, Step], read: Callable[[str], Range]
) -> list[Range]:
    """What a choice takes, where a value is taken only beyond the limit that it was held against."""
    condition, chosen = deciding.get(step.node.input[0]), step.node.input[1]
    if condition is None or chosen not in condition.node.input:
        return list(taken)
    first, second = condition.node.input
    larger = (condition.op in ("Greater", "GreaterOrEqual")) == (chosen == first)
    limit, own = read(second if chosen == first else first), taken[1]
    kept = Range(max(own.low, limit.low), own.high) if larger else Range(own.low, min(own.high, limit.high))
    return [taken[0], kept if kept.low <= kept.high else own, taken[2]]


def _observe(array: Array | None) -> Range:
    if array is None or not np.size(array) or np.asarray(array).dtype.kind not in "fiub":
        return OPEN
    return Range(float(np.min(array)), float(np.max(array)))


def _bound(step: Step, taken: Sequence[Range], evaluator: Evaluator, values: Arrays) -> Range:
    op, result = step.op, values.get(step.gives[0]) if step.gives else None
    if result is not None and np.asarray(result).dtype.kind == "b":
        return Range(0.0, 1.0)
    if op in FIXED or not taken:
        return FIXED.get(op, OPEN)
    first = taken[0]
    if op in RISING:
        return _order(RISING[op](first.low), RISING[op](first.high))
    if op in MOVES:
        return first
    if op in ("Concat", "Where", "Pad"):
        parts = taken[1:] if op == "Where" else taken
        if op == "Pad":  # what is put around is a number of its own, or nothing
            parts = [first, taken[2] if len(taken) > 2 and step.node.input[2] else Range(0.0, 0.0)]
        return Range(min(one.low for one in parts), max(one.high for one in parts))
    if op == "Clip":
        least, most = (taken[i] if i < len(taken) and step.node.input[i] else None for i in (1, 2))
        raised = first if least is None else Range(max(first.low, least.low), max(first.high, least.high))
        return raised if most is None else Range(min(raised.low, most.low), min(raised.high, most.high))
    if op in PAIRS and len(taken) == 2:
        ends = [float(PAIRS[op](a, b)) for a in (first.low, first.high) for b in (taken[1].low, taken[1].high)]
        return OPEN if any(np.isnan(end) for end in ends) else Range(min(ends), max(ends))
    if op == "Abs":
        inside = first.low <= 0 <= first.high
        return Range(0.0 if inside else min(abs(first.low), abs(first.high)), max(abs(first.low), abs(first.high)))
    return _bound_sum(step, taken, evaluator, values)


def _bound_sum(step: Step, taken: Sequence[Range], evaluator: Evaluator, values: Arrays) -> Range:
    """Products with weights, norms, positions and remainders."""
    first, op = taken[0], step.op
    size = max(abs(first.low), abs(first.high))
    if op in ("MatMul", "Gemm", "Conv") and np.isfinite(size):
        weight = evaluator.stored.get(step.node.input[1])
        if weight is None or np.ndim(weight) < 2:
            return OPEN
        rows = np.abs(np.asarray(weight, np.float64))
        axis: Any = tuple(range(1, rows.ndim)) if op == "Conv" or _attribute(step.node, "transB", 0) else -2
        most = size * float(rows.sum(axis=axis).max()) + (_largest(taken[2]) if len(taken) > 2 else 0.0)
        return Range(-most, most)
    if op == "LayerNormalization" and len(taken) > 1:
        result = values.get(step.gives[0])
        shape = result.shape if result is not None else ()
        most = float(np.sqrt(shape[-1])) * _largest(taken[1]) if shape else np.inf
        return Range(
            -most - (_largest(taken[2]) if len(taken) > 2 else 0.0),
            most + (_largest(taken[2]) if len(taken) > 2 else 0.0),
        )
    if op in ("ArgMax", "ArgMin") and step.node.input[0] in values:
        shape = np.shape(values[step.node.input[0]])
        return Range(0.0, float(shape[_attribute(step.node, "axis", 0)] - 1)) if shape else OPEN
    if op == "Mod" and len(taken) > 1 and taken[1].low > 0:
        return Range(min(0.0, 0.0), taken[1].high) if not _attribute(step.node, "fmod", 0) else OPEN
    if op == "ReduceSum":
        many = np.size(values[step.node.input[0]]) if step.node.input[0] in values else 0
        made = max(1, values[step.gives[0]].size) if step.gives[0] in values else 1
        return Range(min(0.0, first.low) * many / made, max(0.0, first.high) * many / made) if many else OPEN
    return OPEN


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _largest(one: Range) -> float:
    return max(abs(one.low), abs(one.high))


def _order(a: float, b: float) -> Range:
    return Range(min(a, b), max(a, b))
