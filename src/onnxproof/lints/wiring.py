"""What a file's nodes read: names that nothing writes, and circles."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from onnxproof.findings import Finding, found
from onnxproof.graph.file import subgraphs
from onnxproof.graph.model import Graph


def lint_wiring(graph: Graph) -> list[Finding]:
    """onnxruntime sorts nodes by itself; what cannot be sorted it refuses."""
    undefined = _undefined(graph.graph, frozenset())
    if undefined is not None:
        node, name = undefined
        message = f"nothing writes {name!r}, which {node.op_type} reads (node {node.name or '?'})"
        return [found("OX306", message, severity="block", where=graph.where(node), evidence={"value": name})]
    circle = _circle(graph.graph.node)
    if circle:
        told = ", ".join(f"{node.op_type} {node.name}".strip() for node in circle[:4])
        return [found("OX306", f"nodes wait for each other in a circle: {told}", severity="block")]
    return []


def _written(graph: onnx.GraphProto) -> frozenset[str]:
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    names += [tensor.values.name for tensor in graph.sparse_initializer]
    return frozenset([*names, *(name for node in graph.node for name in node.output), ""])


def _undefined(graph: onnx.GraphProto, outer: frozenset[str]) -> tuple[onnx.NodeProto, str] | None:
    known = outer | _written(graph)
    for node in graph.node:
        for name in node.input:
            if name not in known:
                return node, name
        for inner in subgraphs(node):
            missing = _undefined(inner, known)
            if missing is not None:
                return missing
    return None


def _circle(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes that are left when all that can be sorted is."""
    every = list(nodes)
    writer = {name: i for i, node in enumerate(every) for name in node.output if name}
    waits = [{writer[name] for name in _reads(node) if name in writer} for node in every]
    readers: list[list[int]] = [[] for _ in every]
    for i, others in enumerate(waits):
        for other in others:
            readers[other].append(i)
    left = [len(others) for others in waits]
    ready = [i for i, count in enumerate(left) if not count]
    for i in ready:  # grows while it is read
        for reader in readers[i]:
            left[reader] -= 1
            if not left[reader]:
                ready.append(reader)
    return [node for node, count in zip(every, left, strict=True) if count]


def _reads(node: onnx.NodeProto) -> list[str]:
    inner = [name for graph in subgraphs(node) for n in graph.node for name in _reads(n)]
    return [*node.input, *inner]
