"""Inside the runtime: inner values of a session, in chunks within a budget of memory, held against the true ones.

Showing a value changes what onnxruntime fuses, so this is for locating only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxproof.blame.nodes import Introduced, measure_distance
from onnxproof.blame.store import Layered
from onnxproof.candidates.candidate import Candidate
from onnxproof.graph.view import Graph, label_node, list_names
from onnxproof.parity.comparison import to_plain
from onnxproof.proof.blame import Step
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Array, Arrays

# Error from which on a float32 run has left the truth.
DEPARTED = 1e-4
# How many times the error of its inputs a node's error must be to be its own.
FACTOR = 100
AMPLIFIES = 10.0
# The last place of half floats, and how many of them are rounding.
HALVES: dict[int | None, float] = {ir.DataType.FLOAT16: 2.0**-10, ir.DataType.BFLOAT16: 2.0**-7}
ROUNDINGS = 8


@dataclass
class Seen:
    """What a run showed: the error of every value, which values hold NaN or infinities, and some worst elements."""

    errors: dict[str, float] = field(default_factory=dict)
    nonfinite: set[str] = field(default_factory=set)
    worst: dict[str, tuple[Any, Any]] = field(default_factory=dict)


def split_names(names: Iterable[str], sizes: Mapping[str, int], budget: int) -> Iterator[list[str]]:
    """Names in order, in groups whose values fit into the budget together."""
    group: list[str] = []
    held = 0
    for name in names:
        size = sizes.get(name, 0)
        if group and held + size > budget:
            yield group
            group, held = [], 0
        group.append(name)
        held += size
    if group:
        yield group


def watch(
    graph: Graph,
    candidate: Candidate,
    settings: SessionSettings,
    renamed: Mapping[str, str],
    inputs: Arrays,
    truth: Layered,
    budget: int,
) -> Seen:
    """Run the graph chunk by chunk and compare every value that has a true one."""
    # A session made from bytes does not know where the weights lie.
    seen, settings = Seen(), replace(settings, weights=graph.folder)
    shown = [name for node in graph.nodes for name in list_names(node.outputs) if name in truth]
    for group in split_names(shown, {name: truth.bytes_of(name) for name in shown}, budget):
        with closing(candidate.open(graph.showing(group), settings, renamed)) as session:
            values = session.run(inputs)
        for name, value in values.items():
            true = truth[name]
            seen.errors[name] = measure_distance(value, true)
            if has_nonfinite(value):
                seen.nonfinite.add(name)
            if seen.errors[name] > DEPARTED and value.shape == true.shape and value.size:
                seen.worst[name] = _pick_element(value, true)
    return seen


def _pick_element(value: Array, true: Array) -> tuple[Any, Any]:
    if value.dtype.kind != "f":
        place = int(np.argmax(value.ravel() != true.ravel()))
    else:
        with np.errstate(all="ignore"):
            place = int(np.nan_to_num(np.abs(value.ravel() - true.ravel()), nan=np.inf, posinf=np.inf).argmax())
    return to_plain(true.ravel()[place]), to_plain(value.ravel()[place])


def find_departures(graph: Graph, seen: Seen) -> list[Introduced]:
    """Nodes whose result is far off though their inputs were not."""
    found = []
    for node in graph.nodes:
        inherited = _find_largest(seen.errors, node.inputs)
        for name in list_names(node.outputs):
            error = seen.errors.get(name, 0.0)
            rounding = ROUNDINGS * max(
                HALVES.get(graph.types.get(one), 0.0) for one in (name, *list_names(node.inputs))
            )
            if error > max(DEPARTED, rounding) and error > FACTOR * inherited:
                found.append(
                    Introduced(node.name or name, node.op_type, name, error, *seen.worst.get(name, (None, None)))
                )
    return found


def _find_largest(errors: Mapping[str, float], values: Sequence[ir.Value | None]) -> float:
    return max((errors.get(name, 0.0) for name in list_names(values)), default=0.0)


def trace_way(graph: Graph, errors: Mapping[str, float], modules: Mapping[str, str | None]) -> list[Step]:
    """The error's way through the graph: every node whose result is off, with what it inherits."""
    steps = []
    for node in graph.nodes:
        error, inherited = _find_largest(errors, node.outputs), _find_largest(errors, node.inputs)
        if error > 0:
            # inf − inf is NaN: behind an infinite error nothing is told of a node's own.
            own = max(0.0, error - inherited) if np.isfinite(inherited) else 0.0
            module = modules.get(label_node(node))
            steps.append(Step(label_node(node), node.op_type, min(own, 1e300), min(inherited, 1e300), module))
    return steps


def find_amplifiers(graph: Graph, seen: Seen, modules: Mapping[str, str | None], least: float) -> list[Step]:
    """Nodes that make a small error of their inputs a large one, the strongest first; `introduced` holds the factor."""
    found = []
    for node in graph.nodes:
        error, inherited = _find_largest(seen.errors, node.outputs), _find_largest(seen.errors, node.inputs)
        factor = error / max(inherited, least)
        if inherited > 0 and np.isfinite(error) and factor > AMPLIFIES and error > 100 * least:
            found.append(Step(label_node(node), node.op_type, factor, inherited, modules.get(label_node(node))))
    return sorted(found, key=lambda step: -step.introduced)[:5]


def find_nonfinite(graph: Graph, nonfinite: Collection[str]) -> ir.Node | None:
    """The node whose result has NaN or infinities although no input of it does."""
    tainted = set(nonfinite)
    born = (n for n in graph.nodes if tainted & {*list_names(n.outputs)} and not tainted & {*list_names(n.inputs)})
    return next(born, None)


def has_nonfinite(array: Array) -> bool:
    """Whether there is a NaN or an infinity in it."""
    return array.dtype.kind == "f" and not np.isfinite(array).all()
