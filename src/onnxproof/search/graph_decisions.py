"""The graph's decisions: limits, thresholds and poles written into the file, whether or not the module has them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from onnxproof.candidates.candidate import Candidate
from onnxproof.errors import Rejected
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.search.goals import Numbers, numbers, off_half, off_integer
from onnxproof.search.watch import NEAR_ZERO
from onnxproof.tensors.arrays import Arrays

LEVELS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "PRelu", "Abs", "Sign"), (0.0,)),
    **dict.fromkeys(("Floor", "Round", "Ceil", "ThresholdedRelu"), (0.0,)),
    "HardSwish": (-3.0, 3.0),
    "Softplus": (20.0,),
    "Exp": (88.8, -104.0),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Sigmoid", "Tanh"), (17.0, -17.0)),
}
HITS: dict[str, Callable[[Any], Any]] = {"Round": off_half, "Floor": off_integer, "Ceil": off_integer}
"""Operators that jump, and where they do: places to be hit exactly."""
COMPARED = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Max", "Min")
POLES = {"Sqrt": 0, "Log": 0, "Reciprocal": 0, "Div": 1}


@dataclass(frozen=True)
class Decision:
    """The value that decides, and where: a number, or another value. `size`: whether its absolute value counts."""

    name: str
    value: str
    place: float | str
    size: bool = False


def decisions(model: onnx.ModelProto) -> list[Decision]:
    """All decisions of the main graph."""
    constants = _scalars(model)
    found = []
    for index, node in enumerate(model.graph.node):
        found += _of_node(f"graph {node.op_type}#{index}", node, constants)
    return found


def _of_node(label: str, node: onnx.NodeProto, constants: Mapping[str, float]) -> list[Decision]:
    if node.op_type in LEVELS:
        places = LEVELS[node.op_type]
        hits = [Decision(f"{label}=", node.input[0], 0.0)] if node.op_type in HITS else []
        return [Decision(f"{label}.{i}", node.input[0], place) for i, place in enumerate(places)] + hits
    if node.op_type == "Clip":
        limits = [constants[name] for name in node.input[1:] if name in constants]
        return [Decision(f"{label}.{i}", node.input[0], place) for i, place in enumerate(limits)]
    if node.op_type in POLES:
        value = node.input[POLES[node.op_type]]
        return [] if value in constants else [Decision(f"{label}.0", value, NEAR_ZERO, size=True)]
    if node.op_type in COMPARED and len(node.input) == 2:
        a, b = node.input
        if a in constants:
            a, b = b, a
        return [] if a in constants else [Decision(f"{label}.0", a, constants.get(b, b))]
    return []


def _scalars(model: onnx.ModelProto) -> dict[str, float]:
    """Constants of one number."""
    tensors = {t.name: t for t in model.graph.initializer if not t.external_data}
    for node in model.graph.node:
        if node.op_type == "Constant":
            tensors.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
    return {
        name: float(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])
        for name, tensor in tensors.items()
        if int(np.prod(tensor.dims)) == 1 and tensor.data_type not in (onnx.TensorProto.STRING, onnx.TensorProto.BOOL)
    }


class GraphWatcher:
    """A session that shows the deciding values. It guides the search and never judges: showing values changes fusions."""

    def __init__(
        self, model: onnx.ModelProto, candidate: Candidate, settings: SessionSettings, renamed: Mapping[str, str]
    ) -> None:
        self.decisions = decisions(model)
        given = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
        made = {out for node in model.graph.node for out in node.output}
        wanted = {d.value for d in self.decisions} | {d.place for d in self.decisions if isinstance(d.place, str)}
        self._fixed = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name in wanted}
        self._inputs = {name: renamed.get(name, name) for name in given}
        shown = copy.deepcopy(model)
        already = {value.name for value in shown.graph.output}
        for name in sorted(wanted & made - already):
            shown.graph.output.append(onnx.ValueInfoProto(name=name))
        plain = replace(settings, optimization="disable", providers=(CPU,), disabled_optimizers=())
        self._session = candidate.open(shown.SerializeToString(), plain, renamed)

    def values(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """The deciding values; nothing where the candidate rejects the input."""
        try:
            made = self._session.run(inputs)
        except Rejected:
            return {}
        given = {graph: inputs[name] for graph, name in self._inputs.items() if name in inputs}
        return {**self._fixed, **given, **made}

    def observe(self, inputs: Arrays) -> Numbers:
        """The numbers of all goals on these inputs."""
        values = self.values(inputs)
        seen: Numbers = {}
        for decision in self.decisions:
            difference = _difference(decision, values)
            if difference is not None:
                seen |= numbers(decision.name, difference)
        return seen


def _difference(decision: Decision, values: Mapping[str, NDArray[Any]]) -> NDArray[np.float64] | None:
    value = values.get(decision.value)
    place = values.get(decision.place) if isinstance(decision.place, str) else decision.place
    if value is None or place is None or value.dtype.kind not in "fiu":
        return None
    wide = np.abs(value.astype(np.float64)) if decision.size else value.astype(np.float64)
    if decision.name.endswith("="):
        return np.asarray(HITS[decision.name.split()[1].split("#")[0]](wide))
    with np.errstate(invalid="ignore"):
        return np.asarray(wide - np.asarray(place, np.float64))
