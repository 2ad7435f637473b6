"""Which value of one graph is which value of another: by name where the exporter's names are kept, else by structure."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from onnxproof.graph.view import Graph, list_names, read_name

# Share of a graph's values that must have a namesake for names to be trusted alone.
ENOUGH = 0.5
# Share from which on namesakes are no accident.
SOME = 0.15


def list_values(graph: Graph) -> list[str]:
    """Values that nodes of the main graph compute, in order."""
    return [name for node in graph.nodes for name in list_names(node.outputs)]


def share_by_name(graph: Graph, known: Mapping[str, object]) -> float:
    """How many of a graph's values have a namesake."""
    values = list_values(graph)
    return sum(name in known for name in values) / len(values) if values else 0.0


def share_by_structure(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], other: Graph, other_values: Mapping[str, NDArray[np.generic]]
) -> dict[str, str]:
    """Values of `graph` → values of `other`, by the longest common runs of nodes that agree in operator and result's shape.

    `shapes` are those of `graph`'s own values; a fault changes values, seldom shapes.
    """
    mine = [(op, shapes.get(name), name) for op, name in _list_results(graph)]
    known = {name: np.shape(other_values[name]) for _, name in _list_results(other) if name in other_values}
    theirs = [(op, known.get(name), name) for op, name in _list_results(other)]
    # autojunk leaves out what occurs often in long lists, and layers that repeat are all of a graph.
    matcher = SequenceMatcher(None, [str(one[:2]) for one in mine], [str(one[:2]) for one in theirs], autojunk=False)
    pairs = {}
    for tag, a, b, c, d in matcher.get_opcodes():
        # One node replaced by one node of the same shape (another operator) still computes the same value.
        if tag == "equal" or (tag == "replace" and b - a == d - c):
            for (_, shape, name), (_, other_shape, other_name) in zip(mine[a:b], theirs[c:d], strict=True):
                if shape == other_shape and other_name in known:
                    pairs[name] = other_name
    return pairs


def _list_results(graph: Graph) -> list[tuple[str, str]]:
    """Operators and their first results. Constants stand anywhere; they would only break the runs."""
    nodes = (node for node in graph.nodes if node.outputs and node.op_type not in ("Constant", "Identity"))
    return [(node.op_type, read_name(node.outputs[0])) for node in nodes]
