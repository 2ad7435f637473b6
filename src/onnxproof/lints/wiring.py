"""What a file's nodes read: names that nothing writes, and circles."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from onnxproof.findings import Finding, found
from onnxproof.graph.view import Graph, list_taken


def lint_wiring(graph: Graph) -> list[Finding]:
    """onnxruntime sorts nodes by itself; what cannot be sorted it refuses."""
    for node, name in graph.unwritten:
        message = f"nothing writes {name!r}, which {node.op_type} reads (node {node.name or '?'})"
        return [found("OX306", message, severity="block", where=graph.where(node), evidence={"value": name})]
    try:
        TopologicalSorter({node: [value.producer() for value in list_taken(node)] for node in graph.nodes}).prepare()
    except CycleError as error:
        told = ", ".join(f"{node.op_type} {node.name}".strip() for node in error.args[1][1:][:4])
        return [found("OX306", f"nodes wait for each other in a circle: {told}", severity="block")]
    return []
