"""The piece around a culprit: where nodes before it compute values that the module does not, the fault may be in any of them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from difflib import SequenceMatcher

import onnx_ir as ir

from onnxproof.graph.view import Graph, label_node, list_names, list_taken, read_name
from onnxproof.proof.blame import Culprit

# Nodes of a piece that are told.
TOLD = 12


def name_piece(graph: Graph, culprit: Culprit, known: Container[str], fresh: Graph | None) -> Culprit:
    """The culprit with its piece; of its nodes the first that a fresh export does not have there is named."""
    nodes = _list_between(graph, culprit.value, known)
    if len(nodes) < 2:
        return culprit
    piece = tuple(label_node(node) for node in nodes)[-TOLD:]
    strange = _find_strange(graph, nodes, fresh, culprit.value, known) if fresh is not None else None
    if strange is None:
        return replace(culprit, piece=piece)
    return replace(culprit, node=label_node(strange), op=strange.op_type, piece=piece)


def _list_between(graph: Graph, value: str | None, known: Container[str]) -> list[ir.Node]:
    """Nodes from known values to this one, in order."""
    found, waiting = set[ir.Node](), [value] if value else []
    while waiting and len(found) <= TOLD * 4:
        node = graph.writer(str(waiting.pop()))
        if node is not None and node not in found and node.op_type != "Constant":
            found.add(node)
            waiting += [name for one in list_taken(node) if (name := read_name(one)) and name not in known]
    return [node for node in graph.nodes if node in found]


def _find_strange(
    graph: Graph, nodes: list[ir.Node], fresh: Graph, value: str | None, known: Container[str]
) -> ir.Node | None:
    # A fresh export's own values are known: only the node that gives this one, and what else it stands on, counts.
    others = _list_between(fresh, value, known)
    if not others:
        return None
    mine, theirs = ([_sign(side, node) for node in part] for side, part in ((graph, nodes), (fresh, others)))
    for tag, start, end, _, _ in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag in ("replace", "delete") and start < end:
            return nodes[start]
    return None


def _sign(graph: Graph, node: ir.Node) -> str:
    """Operator, attributes and the small constants that a node takes."""
    taken = [graph.constant(value) for value in node.inputs if value is not None]
    constants = [array.tolist() for array in taken if array is not None]
    attributes = sorted((name, str(attribute.value)[:200]) for name, attribute in node.attributes.items())
    return f"{node.op_type} {attributes} {constants} {len(list_names(node.inputs))}"
