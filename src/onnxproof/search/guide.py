"""The guide: the decisions of both sides, and slopes towards them. It shows where to look and never judges."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from onnxproof.candidates.candidate import Candidate
from onnxproof.cases.plan import Inputs
from onnxproof.graph.view import Graph
from onnxproof.request.session import SessionSettings
from onnxproof.search.goals import Numbers, split
from onnxproof.search.graph_decisions import GraphWatcher
from onnxproof.search.watch import ModuleWatcher
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Floats


class Guide:
    """What can be seen inside both sides."""

    def __init__(
        self,
        subject: Subject,
        graph: Graph,
        candidate: Candidate,
        settings: SessionSettings,
        renamed: Mapping[str, str],
        example: Inputs,
    ) -> None:
        self._module = ModuleWatcher(subject)
        self._graph: GraphWatcher | None = None
        with suppress(Exception):  # a graph that cannot be watched (a value of an unknown type, more than 2 GB)
            if candidate.abilities.inner_values:
                self._graph = GraphWatcher(graph, candidate, settings, renamed)
        self._calls = self._align(example)

    def observe(self, inputs: Inputs) -> Numbers:
        """The numbers of all goals on these inputs."""
        return {**self._module.observe(inputs), **(self._graph.observe(inputs) if self._graph else {})}

    def number(self, inputs: Inputs, goal: str) -> float:
        """How near these inputs are to one goal; positive where they reach it."""
        graph = goal.startswith("graph ")
        seen = self._graph.observe(inputs) if graph and self._graph else self._module.observe(inputs)
        return seen.get(goal, -np.inf)

    def slope(self, inputs: Inputs, goal: str) -> dict[str, Floats] | None:
        """The gradient of a goal's number; None where there is none."""
        decision, _ = split(goal)
        at_call = self._calls.get(decision)
        if decision.startswith("graph ") and at_call is None:
            return None
        found = self._module.slope(inputs, goal, at_call)
        # A zero gradient, as behind a ReLU that is off, leads nowhere: evolution goes on from there.
        if found is None or not any(np.abs(gradient).max(initial=0.0) > 0 for gradient in found.values()):
            return None
        return found

    def _align(self, example: Inputs) -> dict[str, tuple[int, float]]:
        """Decisions of the graph on values that the module computes too, found by comparing the values themselves."""
        if self._graph is None:
            return {}
        values, results = self._graph.values(example), self._module.results(example)
        return {
            decision.name: (call, decision.place)
            for decision in self._graph.decisions
            if isinstance(decision.place, float) and not decision.name.endswith("=") and not decision.size
            if (call := _find_same(values.get(decision.value), results)) is not None
        }


def _find_same(value: Array | None, results: Mapping[int, Floats]) -> int | None:
    """The first call that computes this value."""
    if value is None or value.dtype.kind != "f":
        return None
    alike = ((call, result) for call, result in results.items() if result.shape == value.shape)
    return next((call for call, result in alike if np.allclose(result, value, rtol=1e-3, atol=1e-5)), None)
