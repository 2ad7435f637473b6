"""An ONNX graph evaluated node by node, by onnx's own operators: no kernel, no rewrite, no rounding to hide behind."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpFunction, OpRun
from onnx.reference.ops._op import OpRunBinary, OpRunBinaryNum, OpRunUnary, OpRunUnaryNum

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
        self._nodes = [_Node(node) for node in evaluator.rt_nodes_]
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
                made.update(zip(node.gives, results, strict=False))
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
        return [Step(one.proto, one.proto.op_type, tuple(_list_taken(one.proto)), one.gives) for one in self._nodes]

    def compute(
        self, given: Mapping[str, Any], places: Iterable[int] | None = None, onward: Pass | None = None
    ) -> dict[str, Any]:
        """The results of the nodes, or of some of them, whose other inputs are given."""
        made: dict[str, Any] = {"": None}
        values: ChainMap[str, Any] = ChainMap(made, given, *self._held.maps)  # type: ignore[arg-type]  # nobody writes
        with np.errstate(all="ignore"):
            for node in self._nodes if places is None else (self._nodes[place] for place in places):
                results = self._evaluate(node, values, onward, None)
                made.update(zip(node.gives, results or (), strict=False))
        return made

    @staticmethod
    def _evaluate(
        node: _Node, values: ChainMap[str, Any], onward: Pass | None, rescue: Rescue | None
    ) -> Sequence[Any] | None:
        arguments: list[Any] = []
        made = values.maps[0]
        try:
            # Nearly all is made by other nodes: a question to all maps costs as much as a small operation.
            arguments.extend(made[name] if name in made else values[name] for name in node.takes)
            results: Sequence[Any] | None = node.run(arguments, values)
        except Exception as error:
            if rescue is None:
                raise
            results = rescue(node.stop(arguments), error)
        return results if results is None or onward is None else onward(node.stop(arguments), results)


class _Node:
    """A node of onnx's evaluator, asked for its operator alone where nothing else has to be done.

    Its own `run` looks at attributes and results anew each time, which costs several times a small operation.
    """

    def __init__(self, node: Any) -> None:
        self.proto: onnx.NodeProto = node.onnx_node
        self.takes, self.gives = tuple(self.proto.input), tuple(self.proto.output)
        self._node, self._context = node, bool(node.need_context())
        own = type(node).run
        self._same_inputs = own in (OpRunBinary.run, OpRunBinaryNum.run)
        self._same_result = own in (OpRunUnaryNum.run, OpRunBinaryNum.run)
        bound = self._context or node.has_subgraph or node.has_linked_attribute or isinstance(node, OpFunction)
        self._attributes: dict[str, Any] | None = None
        if self._same_inputs or self._same_result or own is OpRunUnary.run:
            self._attributes = {}  # these look theirs up by themselves
        elif own is OpRun.run and not bound and all(hasattr(node, name) for name in node.attributes_names_):
            self._attributes = {name: getattr(node, name) for name in node.attributes_names_}

    def run(self, arguments: list[Any], values: Mapping[str, Any]) -> Sequence[Any]:
        """Its results; whatever is unusual goes through onnx's own `run`, which says what is wrong."""
        results = self._run_plainly(arguments)
        if results is not None:
            return results
        return self._node.run(*arguments, **({"context": values} if self._context else {}))  # type: ignore[no-any-return]  # onnx's is untyped

    def _run_plainly(self, arguments: list[Any]) -> Sequence[Any] | None:
        if self._attributes is None or (self._same_inputs and arguments[0].dtype != arguments[1].dtype):
            return None
        try:
            results: Sequence[Any] = self._node._run(*arguments, **self._attributes)
            if type(results) is not tuple or not results or any(type(one) is not np.ndarray for one in results):
                results = self._node._check_and_fix_outputs(results)
        except MemoryError:
            raise
        except Exception:
            return None
        return None if self._same_result and results[0].dtype != arguments[0].dtype else results

    def stop(self, arguments: list[Any]) -> Stop:
        """Where it stands, for whoever looks."""
        return Stop(self.proto.name or self.gives[0], self.proto.op_type, arguments, self.gives, self.takes)


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
