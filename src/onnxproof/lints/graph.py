"""The structure of an ONNX file: versions, dimensions, dead parts, random operators, metadata, external data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from onnxproof.candidates import candidate_of
from onnxproof.errors import UserError
from onnxproof.findings import Finding, found
from onnxproof.graph.file import complaint
from onnxproof.graph.model import Graph
from onnxproof.lints.kernels import ill_typed, missing_kernels, unknown_operators
from onnxproof.lints.weights import lint_weights
from onnxproof.lints.wiring import lint_wiring
from onnxproof.request.session import SessionSettings

RUNTIMES: Mapping[tuple[int, int], tuple[int, int]] = {
    (1, 15): (18, 9),
    (1, 16): (19, 9),
    (1, 17): (20, 9),
    (1, 18): (21, 10),
    (1, 19): (21, 10),
    (1, 20): (21, 10),
    (1, 21): (22, 10),
    (1, 22): (22, 10),
    (1, 23): (23, 11),
    (1, 24): (25, 13),
    (1, 25): (26, 13),
    (1, 31): (26, 13),
}
"""onnxruntime's release → the newest opset and IR version that it loads; measured with files of one Identity node."""

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
LOCAL_PATH = re.compile(
    r'(?:/(?:home|Users|root|mnt|opt|tmp|workspace|usr/local)/[\w.\-/]+)|(?:\b[A-Z]:\\[\w.\-\\]+)|File "[^"]+", line \d+'
)


def lint_file(path: Path, providers: Sequence[str], runtime: str | None = None) -> list[Finding]:
    """Everything that can be said about a file without building a session."""
    graph = Graph.read(path)
    return [
        *_versions(graph, runtime),
        *lint_wiring(graph),
        *unknown_operators(graph),
        *ill_typed(graph),
        *missing_kernels(graph, providers),
        *_fixed(graph),
        *[_graver(finding) for finding in lint_content(graph)],
    ]


REFUSED = re.compile(
    r"single static assignment|stored externally but|TypeInferenceError|Incompatible dimensions|has inconsistent type|Mismatched attribute type|"
    r"Required attribute .{0,40}is missing|is marked single but|not in range \[min=|must not be recursive|is not an output of any node|"
    r"is too small for the declared shape|Inference error\(s\)"
)
BORNE = re.compile(r"\(op_type:[^)]*\): \[\w+\] (?:Inference error\(s\): )?\(op_type:|existing shape differ")
"""Complaints that onnxruntime does not have: about an operator inside another, which it may run by a kernel of its own, and about
a declared shape that is not the inferred one."""
"""Complaints of the checker that onnxruntime has too: here no session is built that would tell."""


def _graver(finding: Finding) -> Finding:
    complaint = str(finding.evidence.get("error", ""))
    refused = REFUSED.search(complaint) and not BORNE.search(complaint)
    return replace(finding, severity="block") if refused else finding


def lint_content(graph: Graph) -> list[Finding]:
    """What sessions and cases do not tell."""
    return [
        *([remark] if (remark := complaint(graph.path)) is not None else []),
        *_written_down(graph),
        *_randomness(graph),
        *_unused(graph),
        *lint_weights(graph),
        *_metadata(graph),
    ]


# --- versions -----------------------------------------------------------------------------------------------------------


def _versions(graph: Graph, runtime: str | None) -> list[Finding]:
    opset, ir, name = newest(runtime)
    problems = [f"opset {graph.opset} (it reads up to {opset})"] * (graph.opset > opset)
    problems += [f"IR version {graph.model.ir_version} (it reads up to {ir})"] * (graph.model.ir_version > ir)
    if not problems:
        return []
    evidence = {"runtime": name, "opset": graph.opset, "ir_version": int(graph.model.ir_version)}
    return [found("OX310", f"{name} does not read {' or '.join(problems)}", evidence=evidence)]


def newest(runtime: str | None) -> tuple[int, int, str]:
    """The newest opset and IR version of a release of onnxruntime; of the installed one by default."""
    if runtime is None:
        runtime = candidate_of(SessionSettings()).versions()["onnxruntime"]
    try:
        major, minor = (int(part) for part in runtime.split(".")[:2])
    except ValueError:
        raise UserError(f"--runtime {runtime!r}: expected a release of onnxruntime such as 1.20") from None
    known = [release for release in RUNTIMES if release <= (major, minor)]
    if not known:
        oldest = ".".join(map(str, min(RUNTIMES)))
        raise UserError(f"--runtime {runtime}: what it reads is not known; expected {oldest} or later")
    opset, ir = RUNTIMES[max(known)]
    return opset, ir, f"onnxruntime {runtime}"


# --- dimensions ---------------------------------------------------------------------------------------------------------


def _fixed(graph: Graph) -> list[Finding]:
    shapes = {value.name: graph.shapes.get(value.name, ()) for value in graph.inputs}
    symbols = {size for shape in shapes.values() for size in shape if not isinstance(size, int)}
    if shapes and any(shapes.values()) and not symbols:
        told = ", ".join(f"{name} {list(shape)}" for name, shape in list(shapes.items())[:4])
        return [found("OX312", f"every dimension of every input is fixed: {told}", evidence={"inputs": shapes})]
    return []


def _written_down(graph: Graph) -> list[Finding]:
    return [_inner(graph, node, size) for node, size in _constant_sizes(graph)][:3]


def _constant_sizes(graph: Graph) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Reshape and Expand nodes that know their first size, though that of their data is a symbol of the inputs."""
    batches = {shape[0] for v in graph.inputs if (shape := graph.shapes.get(v.name)) and isinstance(shape[0], str)}
    constants = _constant_shapes(graph)
    for node in graph.graph.node:
        if node.op_type not in ("Reshape", "Expand") or len(node.input) < 2:
            continue
        shape, target = graph.shapes.get(node.input[0]), constants.get(node.input[1])
        if not shape or shape[0] not in batches or not target:
            continue
        if node.op_type == "Expand":
            if len(target) == len(shape) and target[0] > 1:
                yield node, target[0]
        elif -1 not in target and target[0] != 0:  # 0 copies the size of the data
            yield node, target[0]


LONGEST = 64
"""More dimensions than any tensor has: longer constants are no shapes."""


def _constant_shapes(graph: Graph) -> dict[str, list[int]]:
    """Integers that the file stores, and what is put together from nothing else."""
    known: dict[str, list[int]] = {}
    for name, tensor in graph.constants():
        if tensor.data_type == onnx.TensorProto.INT64 and len(tensor.dims) < 2 and sum(tensor.dims) <= LONGEST:
            array = graph.array(tensor)
            known |= {name: [int(size) for size in array.ravel()]} if array is not None else {}
    for node in graph.graph.node:
        if node.op_type == "Concat" and all(name in known for name in node.input):
            known[node.output[0]] = [size for name in node.input for size in known[name]]
        elif node.op_type in ("Identity", "Unsqueeze", "Squeeze") and node.input and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
    return known


def _inner(graph: Graph, node: onnx.NodeProto, size: int) -> Finding:
    message = f"{node.op_type} node {node.name} has a constant shape beginning with {size}, though its input has a symbolic dimension"
    return found("OX313", message, where=graph.where(node), evidence={"size": size})


# --- random, unused -------------------------------------------------------------------------------------------------------


def _randomness(graph: Graph) -> list[Finding]:
    constants = {name: tensor for name, tensor in graph.constants() if tensor.data_type == onnx.TensorProto.BOOL}
    nodes = [node for node in graph.nodes if node.op_type in RANDOM or _training(graph, node, constants)]
    if not nodes:
        return []
    told = ", ".join(sorted({node.op_type for node in nodes}))
    evidence = {"nodes": [node.name for node in nodes][:50]}
    return [
        found(
            "OX318",
            f"{len(nodes)} random or training-mode nodes: {told}",
            where=graph.where(nodes[0]),
            evidence=evidence,
        )
    ]


def _training(graph: Graph, node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> bool:
    if node.op_type == "BatchNormalization":
        return any(a.name == "training_mode" and a.i == 1 for a in node.attribute)
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] in constants:
        value = graph.array(constants[node.input[2]])
        return value is not None and bool(value.any())
    return False


def _unused(graph: Graph) -> list[Finding]:
    parts = {
        "inputs": [v.name for v in graph.inputs if v.name not in _read(graph)],
        "stored tensors": [t.name for t in graph.graph.initializer if t.name not in _read(graph)],
        "nodes": [node.name or node.op_type for node in _dead(graph)],
        "Identity chains": [node.name or node.output[0] for node in _chained(graph)],
        "branches that are never taken": [node.name or node.output[0] for node in _decided(graph)],
    }
    present = {what: names for what, names in parts.items() if names}
    if not present:
        return []
    told = "; ".join(f"{len(names)} {what} ({', '.join(names[:3])})" for what, names in present.items())
    return [found("OX317", f"parts that could be left out: {told}", evidence={k: v[:50] for k, v in present.items()})]


def _read(graph: Graph) -> set[str]:
    """Names that a node or an output of the graph reads."""
    return {name for node in graph.nodes for name in node.input} | {value.name for value in graph.graph.output}


def _dead(graph: Graph) -> list[onnx.NodeProto]:
    needed = {value.name for value in graph.graph.output}
    dead = []
    for node in reversed(graph.graph.node):
        if needed.isdisjoint(node.output):
            dead.append(node)
            continue
        needed.update(node.input)
        inner = [n for a in node.attribute for g in ([a.g] if a.HasField("g") else a.graphs) for n in g.node]
        while inner:
            one = inner.pop()
            needed.update(one.input)
            inner += [n for a in one.attribute for g in ([a.g] if a.HasField("g") else a.graphs) for n in g.node]
    return dead


def _chained(graph: Graph) -> list[onnx.NodeProto]:
    identities = {n.output[0] for n in graph.graph.node if n.op_type == "Identity" and n.output}
    return [n for n in graph.graph.node if n.op_type == "Identity" and n.input and n.input[0] in identities]


def _decided(graph: Graph) -> list[onnx.NodeProto]:
    """`If` nodes whose condition is stored in the file."""
    return [node for node in graph.nodes if node.op_type == "If" and node.input and node.input[0] in graph.decided]


# --- metadata ---------------------------------------------------------------------------------------------------------------


def _metadata(graph: Graph) -> list[Finding]:
    hits = list(dict.fromkeys(match.group(0) for text in _texts(graph) for match in LOCAL_PATH.finditer(text)))
    if not hits:
        return []
    message = f"the metadata tells {len(hits)} local paths or source lines, such as {hits[0][:120]}"
    return [found("OX322", message, evidence={"found": hits[:20]})]


def _texts(graph: Graph) -> Iterator[str]:
    model = graph.model
    yield from (entry.value for entry in model.metadata_props)
    yield from (entry.value for entry in graph.graph.metadata_props)
    yield model.doc_string
    yield graph.graph.doc_string
    for node in graph.nodes:
        yield node.doc_string
        yield from (entry.value for entry in node.metadata_props)
    for value in [*graph.graph.input, *graph.graph.output, *graph.graph.value_info]:
        yield value.doc_string
        yield from (entry.value for entry in value.metadata_props)
