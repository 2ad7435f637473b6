"""Which node: every node is fed the true inputs, so that what it introduces is told from what it inherits.

The graph is evaluated in float64, node by node. Where a value of the graph has a counterpart (in the captured program, or in a fresh
export of it), the node's result is compared with it and then replaced by it: errors do not travel, and all culprits show at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from onnxproof.artifact.sourcemap import Origin
from onnxproof.blame.capture import Values
from onnxproof.blame.record import Culprit
from onnxproof.comparison import as_float64, classify, local_scale
from onnxproof.runners.reference import widen
from onnxproof.runners.reference_ops import FAST_OPS

WORTH_TELLING = 3e-7
"""Introduced error above which a node is a suspect: float32 constants cost less."""
SHOWN = 20


@dataclass(frozen=True)
class Introduced:
    """What one node adds to the error of the value it is compared by."""

    node: str
    op: str
    value: str
    error: float


def follow(
    model: onnx.ModelProto, inputs: Values, truth: Mapping[str, NDArray[Any]], keep_lossy_casts: bool
) -> tuple[list[Introduced], Values]:
    """Evaluate the graph with true inputs everywhere: what each node introduces, and all values.

    A node that raises on true inputs introduces an infinite error; so does an output of the graph in another shape.
    """
    evaluator = ReferenceEvaluator(widen(model, keep_lossy_casts=keep_lossy_casts), new_ops=FAST_OPS)
    values: dict[str, Any] = {"": None, **evaluator.rt_inits_, **inputs}
    found: list[Introduced] = []
    outputs = {output.name for output in model.graph.output}
    with np.errstate(all="ignore"):
        for node in evaluator.rt_nodes_:
            try:
                arguments = [values[name] for name in node.input]
                results = node.run(*arguments, context=values) if node.need_context() else node.run(*arguments)
            except Exception:
                found.append(Introduced(node.onnx_node.name or node.output[0], node.op_type, node.output[0], np.inf))
                if any(name not in truth for name in node.output):
                    return found, _arrays(values)
                results = [truth[name] for name in node.output]
            for name, result in zip(node.output, results, strict=False):
                true = truth.get(name)
                values[name] = result
                if true is None or not isinstance(result, np.ndarray | np.generic):
                    continue
                strict = name in outputs and np.shape(result) != true.shape
                error = np.inf if strict else distance(np.asarray(result), true)
                found.append(Introduced(node.onnx_node.name or name, node.op_type, name, error))
                if np.shape(result) == true.shape:
                    values[name] = true.astype(np.asarray(result).dtype)
    return found, _arrays(values)


def _arrays(values: Mapping[str, Any]) -> Values:
    return {name: np.asarray(v) for name, v in values.items() if isinstance(v, np.ndarray | np.generic)}


def distance(value: NDArray[Any], true: NDArray[Any]) -> float:
    """Largest difference relative to the local scale; infinite for another shape or another pattern of NaN and infinities."""
    if value.shape != true.shape:
        return np.inf if value.size != true.size else distance(value.reshape(true.shape), true)
    if not true.size:
        return 0.0
    if true.dtype.kind not in "fc" or value.dtype.kind not in "fc":
        return float(np.any(value != true))
    v, t = as_float64(value), as_float64(true)
    if (classify(v) != classify(t)).any():
        return np.inf
    difference = np.where(np.isfinite(t), np.abs(v - t), 0.0)
    return float((difference / local_scale(t)).max())


def suspects(found: list[Introduced], origins: Mapping[str, Origin], sources: Mapping[str, Origin]) -> list[Culprit]:
    """Nodes that introduce more than float32 constants explain; the largest first, the earlier one among equals."""
    ranked = sorted((f for f in found if f.error > WORTH_TELLING), key=lambda f: -f.error)
    culprits: dict[str, Culprit] = {}
    for one in ranked:
        origin = sources.get(one.node) or origins.get(one.value) or Origin()
        culprits.setdefault(
            one.node,
            Culprit(one.node, one.op, min(one.error, 1e300), origin.module, origin.file, origin.line, origin.text),
        )
    return list(culprits.values())[:SHOWN]


def exposed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph with every value among its outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    present = {output.name for output in copy.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in present:
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
                present.add(name)
    return copy


def first_departure(
    model: onnx.ModelProto, values: Mapping[str, NDArray[Any]], truth: Mapping[str, NDArray[Any]]
) -> list[Introduced]:
    """Where a run in float32 leaves the truth: nodes whose result is far off though their inputs were not."""
    errors: dict[str, float] = {}
    found = []
    for node in model.graph.node:
        inherited = max((errors.get(name, 0.0) for name in node.input), default=0.0)
        for name in node.output:
            if name in values and name in truth:
                errors[name] = distance(values[name], truth[name])
                if errors[name] > 1e-4 and errors[name] > 100 * inherited:
                    found.append(Introduced(node.name or name, node.op_type, name, errors[name]))
    return found
