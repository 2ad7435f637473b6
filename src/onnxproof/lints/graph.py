"""The structure of an ONNX file: versions, dimensions, dead parts, random operators, metadata, external data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxproof.candidates import choose_candidate
from onnxproof.errors import UserError
from onnxproof.findings import Finding, found
from onnxproof.graph.file import find_complaint
from onnxproof.graph.view import Graph, label_node, list_names, read_name
from onnxproof.lints.kernels import find_ill_typed, find_missing_kernels, find_unknown_operators
from onnxproof.lints.weights import lint_weights
from onnxproof.lints.wiring import lint_wiring
from onnxproof.request.session import SessionSettings

# onnxruntime's release → the newest opset and IR version that it and those up to the next one here load; measured
# with files of one Identity node, up to 1.31.
RUNTIMES: Mapping[tuple[int, int], tuple[int, int]] = {
    (1, 15): (18, 9),
    (1, 16): (19, 9),
    (1, 17): (20, 9),
    (1, 18): (21, 10),
    (1, 21): (22, 10),
    (1, 23): (23, 11),
    (1, 24): (25, 13),
    (1, 25): (26, 13),
}

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
LOCAL_PATH = re.compile(
    r'(?:/(?:home|Users|root|mnt|opt|tmp|workspace|usr/local)/[\w.\-/]+)|(?:\b[A-Z]:\\[\w.\-\\]+)|File "[^"]+", line \d+'
)


def lint_graph(graph: Graph, providers: Sequence[str], runtime: str | None = None) -> list[Finding]:
    """Everything that can be said about a file without building a session."""
    return [
        *_lint_versions(graph, runtime),
        *lint_wiring(graph),
        *find_unknown_operators(graph),
        *find_ill_typed(graph),
        *find_missing_kernels(graph, providers),
        *_lint_fixed_shapes(graph),
        *[_raise_severity(finding) for finding in lint_content(graph)],
    ]


# Complaints of the checker that onnxruntime has too: here no session is built that would tell.
REFUSED = re.compile(
    r"single static assignment|stored externally but|TypeInferenceError|Incompatible dimensions|has inconsistent type|Mismatched attribute type|"
    r"Required attribute .{0,40}is missing|is marked single but|not in range \[min=|must not be recursive|is not an output of any node|"
    r"is too small for the declared shape|Inference error\(s\)"
)
# Complaints that onnxruntime does not have: about an operator inside another, which it may run by a kernel of its
# own, and about a declared shape that is not the inferred one.
BORNE = re.compile(r"\(op_type:[^)]*\): \[\w+\] (?:Inference error\(s\): )?\(op_type:|existing shape differ")


def _raise_severity(finding: Finding) -> Finding:
    said = str(finding.evidence.get("error", ""))
    refused = REFUSED.search(said) and not BORNE.search(said)
    return replace(finding, severity="block") if refused else finding


def lint_content(graph: Graph) -> list[Finding]:
    """What sessions and cases do not tell."""
    return [
        *([remark] if (remark := find_complaint(graph.path)) is not None else []),
        *_lint_constant_sizes(graph),
        *_lint_randomness(graph),
        *_lint_unused(graph),
        *lint_weights(graph),
        *_lint_metadata(graph),
    ]


def _lint_versions(graph: Graph, runtime: str | None) -> Iterator[Finding]:
    opset, newest_ir, name = find_newest(runtime)
    written = int(graph.model.ir_version)
    problems = [f"opset {graph.opset} (it reads up to {opset})"] * (graph.opset > opset)
    problems += [f"IR version {written} (it reads up to {newest_ir})"] * (written > newest_ir)
    if problems:
        evidence = {"runtime": name, "opset": graph.opset, "ir_version": written}
        yield found("OX310", f"{name} does not read {' or '.join(problems)}", evidence=evidence)


def find_newest(runtime: str | None) -> tuple[int, int, str]:
    """The newest opset and IR version of a release of onnxruntime; of the installed one by default."""
    if runtime is None:
        runtime = choose_candidate(SessionSettings()).versions()["onnxruntime"]
    try:
        major, minor = (int(part) for part in runtime.split(".")[:2])
    except ValueError:
        raise UserError(f"--runtime {runtime!r}: expected a release of onnxruntime such as 1.20") from None
    known = [release for release in RUNTIMES if release <= (major, minor)]
    if not known:
        oldest = ".".join(map(str, min(RUNTIMES)))
        raise UserError(f"--runtime {runtime}: what it reads is not known; expected {oldest} or later")
    opset, newest_ir = RUNTIMES[max(known)]
    return opset, newest_ir, f"onnxruntime {runtime}"


def _lint_fixed_shapes(graph: Graph) -> Iterator[Finding]:
    shapes = {name: graph.shapes.get(name, ()) for name in list_names(graph.inputs)}
    if any(shapes.values()) and all(isinstance(size, int) for shape in shapes.values() for size in shape):
        told = ", ".join(f"{name} {list(shape)}" for name, shape in list(shapes.items())[:4])
        yield found("OX312", f"every dimension of every input is fixed: {told}", evidence={"inputs": shapes})


def _lint_constant_sizes(graph: Graph) -> Iterator[Finding]:
    for node, size in islice(_find_constant_sizes(graph), 3):
        message = f"{node.op_type} node {node.name} has a constant shape beginning with {size}, though its input has a symbolic dimension"
        yield found("OX313", message, where=graph.where(node), evidence={"size": size})


def _find_constant_sizes(graph: Graph) -> Iterator[tuple[ir.Node, int]]:
    """Reshape and Expand nodes that know their first size, though that of their data is a symbol of the inputs."""
    shapes = [graph.shapes.get(name) for name in list_names(graph.inputs)]
    batches = {shape[0] for shape in shapes if shape and isinstance(shape[0], str)}
    for node in graph.nodes:
        if node.op_type not in ("Reshape", "Expand") or len(node.inputs) < 2:
            continue
        shape = graph.shapes.get(read_name(node.inputs[0]))
        target = _read_sizes(graph, node.inputs[1]) if shape and shape[0] in batches else None
        if not shape or not target:
            continue
        expands = node.op_type == "Expand" and len(target) == len(shape) and target[0] > 1
        reshapes = node.op_type == "Reshape" and -1 not in target and target[0] != 0  # 0 copies the size of the data
        if expands or reshapes:
            yield node, target[0]


SAME_NUMBERS = ("Identity", "Unsqueeze", "Squeeze")
# Nodes that a shape is put together by at most: a file may write circles.
DEEPEST = 64


def _read_sizes(graph: Graph, value: ir.Value | None, deepest: int = DEEPEST) -> list[int] | None:
    """Integers that the file stores, and what is put together from nothing else."""
    if value is None or not deepest:
        return None
    array = graph.constant(value)
    if array is not None:
        return [int(size) for size in array.ravel()] if array.dtype == np.int64 and array.ndim < 2 else None
    node = value.producer()
    if node is not None and node.op_type == "Concat":
        parts = [_read_sizes(graph, part, deepest - 1) for part in node.inputs]
        return None if None in parts else [size for part in parts if part is not None for size in part]
    if node is None or node.op_type not in SAME_NUMBERS or not node.inputs:
        return None
    return _read_sizes(graph, node.inputs[0], deepest - 1)


def _lint_randomness(graph: Graph) -> Iterator[Finding]:
    nodes = [node for node in graph.all_nodes if node.op_type in RANDOM or _is_training(graph, node)]
    if nodes:
        message = f"{len(nodes)} random or training-mode nodes: {', '.join(sorted({node.op_type for node in nodes}))}"
        evidence = {"nodes": [node.name for node in nodes][:50]}
        yield found("OX318", message, where=graph.where(nodes[0]), evidence=evidence)


def _is_training(graph: Graph, node: ir.Node) -> bool:
    if node.op_type == "BatchNormalization":
        mode = node.attributes.get("training_mode")
        return mode is not None and mode.value == 1
    if node.op_type == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        value = graph.constant(node.inputs[2])
        return value is not None and bool(value.any())
    return False


def _lint_unused(graph: Graph) -> Iterator[Finding]:
    needed = graph.before(*graph.outputs)
    parts = {
        "inputs": list_names([value for value in graph.inputs if _unread(value)]),
        "stored tensors": [name for name, value in graph.main.initializers.items() if _unread(value)],
        "nodes": [node.name or node.op_type for node in reversed(graph.nodes) if node not in needed],
        "Identity chains": [label_node(node) for node in graph.nodes if _chained(node)],
        "branches that are never taken": [label_node(node) for node in graph.all_nodes if graph.never_taken(node)],
    }
    present = {what: unused for what, unused in parts.items() if unused}
    if present:
        told = "; ".join(f"{len(unused)} {what} ({', '.join(unused[:3])})" for what, unused in present.items())
        yield found("OX317", f"parts that could be left out: {told}", evidence={k: v[:50] for k, v in present.items()})


def _unread(value: ir.Value) -> bool:
    return not value.uses() and not value.is_graph_output()


def _chained(node: ir.Node) -> bool:
    """An Identity of an Identity."""
    before = node.inputs[0].producer() if node.op_type == "Identity" and node.inputs and node.inputs[0] else None
    return before is not None and before.op_type == "Identity"


def _lint_metadata(graph: Graph) -> Iterator[Finding]:
    hits = list(dict.fromkeys(match.group(0) for text in _list_texts(graph) for match in LOCAL_PATH.finditer(text)))
    if hits:
        message = f"the metadata tells {len(hits)} local paths or source lines, such as {hits[0][:120]}"
        yield found("OX322", message, evidence={"found": hits[:20]})


def _list_texts(graph: Graph) -> Iterator[str]:
    parts: list[Any] = [graph.model, graph.main, *graph.all_nodes, *graph.values.values()]
    for part in parts:
        # What is no UTF-8 comes as bytes.
        yield from map(str, (part.doc_string or "", *part.metadata_props.values()))
