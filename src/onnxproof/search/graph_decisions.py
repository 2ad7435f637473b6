"""The graph's decisions: limits, thresholds and poles written into the file, whether or not the module has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxproof.candidates.candidate import Candidate
from onnxproof.errors import Rejected
from onnxproof.graph.view import Graph, list_names, read_name
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.search.goals import Numbers, leave_half, leave_integer, list_goals
from onnxproof.search.watch import NEAR_ZERO
from onnxproof.tensors.arrays import Array, Arrays, Floats

LEVELS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "PRelu", "Abs", "Sign"), (0.0,)),
    **dict.fromkeys(("Floor", "Round", "Ceil", "ThresholdedRelu"), (0.0,)),
    "HardSwish": (-3.0, 3.0),
    # Where PyTorch's own becomes the identity.
    "Softplus": (20.0,),
    # Where float32 overflows, and where it becomes zero.
    "Exp": (88.8, -104.0),
    # Where float32 no longer tells the result from its limit.
    **dict.fromkeys(("Softmax", "LogSoftmax", "Sigmoid", "Tanh"), (17.0, -17.0)),
}
# Operators that jump, and where they do: places to be hit exactly.
HITS: dict[str, Callable[[Any], Any]] = {"Round": leave_half, "Floor": leave_integer, "Ceil": leave_integer}
COMPARED = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Max", "Min")
POLES = {"Sqrt": 0, "Log": 0, "Reciprocal": 0, "Div": 1}


@dataclass(frozen=True)
class Decision:
    """The value that decides, and where: a number, or another value. `size`: whether its absolute value counts."""

    name: str
    value: str
    place: float | str
    size: bool = False


def find_decisions(graph: Graph) -> list[Decision]:
    """All decisions of the main graph."""
    constants = {name: float(number) for name, number in graph.scalars.items() if number.dtype.kind not in "bcOSU"}
    found = []
    for index, node in enumerate(graph.nodes):
        found += _read_node(f"graph {node.op_type}#{index}", node.op_type, [*map(read_name, node.inputs)], constants)
    return found


def _read_node(label: str, op: str, inputs: Sequence[str], constants: Mapping[str, float]) -> list[Decision]:
    if op in LEVELS or op == "Clip":
        places = LEVELS.get(op) or [constants[name] for name in inputs[1:] if name in constants]
        hits = [Decision(f"{label}=", inputs[0], 0.0)] if op in HITS else []
        return [Decision(f"{label}.{i}", inputs[0], place) for i, place in enumerate(places)] + hits
    if op in POLES:
        value = inputs[POLES[op]]
        return [] if value in constants else [Decision(f"{label}.0", value, NEAR_ZERO, size=True)]
    if op in COMPARED and len(inputs) == 2:
        a, b = inputs
        if a in constants:
            a, b = b, a
        return [] if a in constants else [Decision(f"{label}.0", a, constants.get(b, b))]
    return []


class GraphWatcher:
    """A session that shows the deciding values. It guides the search and never judges: showing values changes fusions."""

    def __init__(
        self, graph: Graph, candidate: Candidate, settings: SessionSettings, renamed: Mapping[str, str]
    ) -> None:
        self.decisions = find_decisions(graph)
        wanted = {d.value for d in self.decisions} | {d.place for d in self.decisions if isinstance(d.place, str)}
        self._fixed = {name: array for name in wanted if (array := _read_stored(graph, name)) is not None}
        self._inputs = {name: renamed.get(name, name) for name in list_names(graph.main.inputs)}
        already = set(list_names(graph.outputs))
        made = {name for name in wanted if graph.writer(name) is not None}
        plain = replace(
            settings, optimization="disable", providers=(CPU,), disabled_optimizers=(), weights=graph.folder
        )
        self._session = candidate.open(graph.showing(sorted(made - already), besides=True), plain, renamed)

    def values(self, inputs: Arrays) -> dict[str, Array]:
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
        differences = ((decision.name, _measure_difference(decision, values)) for decision in self.decisions)
        shown = [list_goals(name, difference) for name, difference in differences if difference is not None]
        return {goal: number for goals in shown for goal, number in goals.items()}


def _measure_difference(decision: Decision, values: Arrays) -> Floats | None:
    value = values.get(decision.value)
    place = values.get(decision.place) if isinstance(decision.place, str) else decision.place
    if value is None or place is None or value.dtype.kind not in "fiu":
        return None
    wide = np.abs(value.astype(np.float64)) if decision.size else value.astype(np.float64)
    if decision.name.endswith("="):
        return np.asarray(HITS[decision.name.split()[1].split("#")[0]](wide))
    with np.errstate(invalid="ignore"):
        return np.asarray(wide - np.asarray(place, np.float64))


def _read_stored(graph: Graph, name: str) -> Array | None:
    value = graph.main.initializers.get(name)
    return graph.array(value.const_value) if value is not None and value.const_value is not None else None
