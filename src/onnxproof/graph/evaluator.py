"""An ONNX graph evaluated node by node, by onnx's own operators: no kernel, no rewrite, no rounding to hide behind."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from onnxproof.errors import Rejected
from onnxproof.graph.expansion import expand
from onnxproof.graph.file import list_subgraphs
from onnxproof.graph.operators import FAST_OPS
from onnxproof.graph.weights import NONE, Weights
from onnxproof.graph.widening import widen, widen_array
from onnxproof.tensors.arrays import Array, Arrays

RECURRENT = {"LSTM", "GRU", "RNN"}
# Operators that look at a weight piece by piece, and its place among what they take.
PIECEWISE = {"MatMul": 1, "Gemm": 1, "Gather": 0}


@dataclass(frozen=True)
class Stop:
    """A node that was just evaluated, or could not be."""

    node: str
    """Its name, or that of its first result."""
    op: str
    arguments: list[Any]
    values: Sequence[str]
    """The names of its results."""
    taken: Sequence[str] = ()
    """The names of what it takes."""


@dataclass(frozen=True)
class Step:
    """One node, what it takes (its subgraphs included) and what it gives."""

    node: onnx.NodeProto
    op: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]


# What goes on in place of a node's results: the same ones, by whoever only looks.
Pass = Callable[[Stop, Sequence[Any]], Sequence[Any]]
# What goes on where a node raises; None ends the run there.
Rescue = Callable[[Stop, Exception], Sequence[Any] | None]


class Evaluator:
    """A graph in the dtypes that its tensors have: exact where it was widened."""

    def __init__(self, model: onnx.ModelProto, operators: Sequence[type] = FAST_OPS, weights: Weights = NONE) -> None:
        """`weights` are those that the model was separated from."""
        # The evaluator's own `run` shows no value on the way and frees none: its nodes are run here, and nowhere else.
        _sort(model.graph)
        evaluator = ReferenceEvaluator(model, new_ops=list(operators))
        self._nodes: list[Any] = evaluator.rt_nodes_
        self._held: ChainMap[str, Any] = ChainMap(evaluator.rt_inits_, weights)  # type: ignore[arg-type]  # nobody writes
        self.stored: ChainMap[str, Any] = ChainMap(evaluator.rt_inits_, weights.whole())  # type: ignore[arg-type]  # nobody writes
        self.inputs: list[str] = [name for name in evaluator.input_names if name not in self.stored]
        self.outputs: list[str] = list(evaluator.output_names)
        self._last = _find_last_uses(model.graph, {*self.stored, *self.outputs})

    @classmethod
    def exact(cls, model: onnx.ModelProto, weights: Weights = NONE, *, keep_lossy_casts: bool) -> Evaluator:
        """Of the graph in float64; see `widen`."""
        wide = widen(expand(model), keep_lossy_casts=keep_lossy_casts)
        made = cls(wide, weights=widen_weights(wide, weights))
        del wide.graph.initializer[:]  # the evaluator has them as arrays, and keeps what it was made of
        return made

    def run(
        self, inputs: Mapping[str, Array], onward: Pass | None = None, rescue: Rescue | None = None
    ) -> dict[str, Array]:
        """The outputs (those before the end of a run that a node ended). A value is dropped after its last use."""
        # ONNX calls an optional input that is left out by the empty name.
        made: dict[str, Any] = {"": None, **inputs}
        values: ChainMap[str, Any] = ChainMap(made, *self._held.maps)
        with np.errstate(all="ignore"):
            for node, done in zip(self._nodes, self._last, strict=True):
                results = self._evaluate(node, values, onward, rescue)
                if results is None:
                    break
                made.update(zip(node.output, results, strict=False))
                for name in done:
                    made.pop(name, None)
        return {name: np.asarray(values[name]) for name in self.outputs if name in values}

    @property
    def small(self) -> Mapping[str, Any]:
        """What is stored in the model itself: large weights are read anew whenever somebody asks."""
        return self.stored.maps[0]

    @cached_property
    def steps(self) -> list[Step]:
        """The nodes in the order they are evaluated."""
        return [Step(n.onnx_node, n.op_type, tuple(_list_taken(n.onnx_node)), tuple(n.output)) for n in self._nodes]

    def compute(self, places: Sequence[int], given: Mapping[str, Any], onward: Pass) -> dict[str, Any]:
        """The results of some of the nodes, whose other inputs are given."""
        made: dict[str, Any] = {"": None}
        values: ChainMap[str, Any] = ChainMap(made, given, *self._held.maps)  # type: ignore[arg-type]  # nobody writes
        with np.errstate(all="ignore"):
            for place in places:
                node = self._nodes[place]
                results = self._evaluate(node, values, onward, None)
                made.update(zip(node.output, results or (), strict=False))
        return made

    @staticmethod
    def _evaluate(
        node: Any, values: Mapping[str, Any], onward: Pass | None, rescue: Rescue | None
    ) -> Sequence[Any] | None:
        stop = Stop(node.onnx_node.name or node.output[0], node.op_type, [], node.output, node.input)
        try:
            stop.arguments.extend(values[name] for name in node.input)
            context = {"context": values} if node.need_context() else {}
            results: Sequence[Any] | None = node.run(*stop.arguments, **context)
        except Exception as error:
            if rescue is None:
                raise
            results = rescue(stop, error)
        return results if results is None or onward is None else onward(stop, results)


def widen_weights(model: onnx.ModelProto, weights: Weights) -> Weights:
    """Those that a model was separated from in float64, but for what is only multiplied by or looked up in: it is widened there."""
    used = defaultdict[str, set[bool]](set)
    for node in model.graph.node:
        own = None if node.domain else PIECEWISE.get(node.op_type)
        for place, name in enumerate(_list_taken(node)):
            used[name].add(place == own)
    for output in model.graph.output:
        used[output.name].add(False)
    return weights.widened(but={name for name in weights.list_matrices() if used[name] == {True}})


def _sort(graph: onnx.GraphProto) -> None:
    """Put a node after those whose results it takes: converters append casts at the end, and onnxruntime does not mind."""
    # What is left out has no name, as an input or as an output.
    writers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needs = {
        place: {writers[name] for name in _list_taken(node) if name in writers} for place, node in enumerate(graph.node)
    }
    if all(max(before, default=-1) < place for place, before in needs.items()):
        return
    nodes = [graph.node[place] for place in TopologicalSorter(needs).static_order()]
    del graph.node[:]
    graph.node.extend(nodes)


def _find_last_uses(graph: onnx.GraphProto, kept: set[str]) -> list[list[str]]:
    """For each node, the values that no later node takes."""
    last = {name: place for place, node in enumerate(graph.node) for name in (*_list_taken(node), *node.output) if name}
    uses: list[list[str]] = [[] for _ in graph.node]
    for name, place in last.items():
        if name not in kept:
            uses[place].append(name)
    return uses


def _list_taken(node: onnx.NodeProto) -> Iterator[str]:
    """What a node takes, its subgraphs included."""
    yield from node.input
    for graph in list_subgraphs(node):
        for inner in graph.node:
            yield from _list_taken(inner)
        # A branch may return a value of the outer graph that none of its nodes reads.
        yield from (output.name for output in graph.output)


class ReferenceRunner:
    """A widened graph as one side of a comparison: whatever it cannot do is a rejection."""

    name = "reference"

    def __init__(
        self, model: onnx.ModelProto, renamed: Mapping[str, str] | None = None, weights: Weights = NONE
    ) -> None:
        self._renamed = dict(renamed or {})
        lengths = [node.name for node in model.graph.node if node.op_type in RECURRENT and any(node.input[4:5])]
        # It would answer for whole sequences, and its answer would be taken for the truth.
        if lengths:
            raise Rejected(f"onnx's evaluator does not look at the sequence lengths of {lengths[0]}")
        try:
            self.evaluator = Evaluator(model, weights=weights)
        except Exception as error:
            raise Rejected(f"{type(error).__name__}: {error}") from error

    def run(self, inputs: Arrays) -> dict[str, Array]:
        feed = {name: widen_array(inputs[self._renamed.get(name, name)]) for name in self.evaluator.inputs}
        try:
            return self.evaluator.run(feed)
        except MemoryError:
            raise
        except Exception as error:
            raise Rejected(f"{type(error).__name__}: {error}") from error
