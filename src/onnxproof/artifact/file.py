"""Reading an ONNX file someone wrote, with an answer for every way it can be broken."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxproof.graph.file import external_files
from onnxproof.graph.view import Graph, dims, name_of
from onnxproof.proof.artifact import Artifact, Port

SIGNATURE = "onnxproof.signature"
"""Key of the model's metadata under which onnxproof promises the names of inputs and outputs."""


def read_artifact(path: Path, exporter: str = "unknown", **made: Any) -> Artifact:
    """The artifact in a file; a file that is no usable ONNX model is a finding."""
    return describe(Graph.read(path), exporter, **made)


def describe(graph: Graph, exporter: str = "unknown", **made: Any) -> Artifact:
    """The artifact in a file that was read already."""
    path, model, promised = graph.path, graph.model, _promised(graph)
    beside = external_files(path, graph.proto)
    return Artifact(
        path=str(path),
        exporter=exporter,
        opset=graph.opset,
        ir_version=int(model.ir_version),
        producer=f"{model.producer_name or ''} {model.producer_version or ''}".strip(),
        sha256=_hash([path, *beside]),
        bytes=sum(file.stat().st_size for file in [path, *beside]),
        nodes=len(graph.nodes),
        operators=_operators(graph),
        inputs=tuple(_port(value) for value in graph.inputs),
        outputs=tuple(_port(value) for value in graph.outputs),
        promised_inputs=promised[0],
        promised_outputs=promised[1],
        bounds=promised[2],
        **made,
    )


def _hash(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return digest.hexdigest()


def _operators(graph: Graph) -> dict[str, int]:
    """How many nodes of each operator there are, in subgraphs and local functions too; the most frequent first."""
    names = (f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in graph.all_nodes)
    return dict(Counter(names).most_common())


def _port(value: ir.Value) -> Port:
    if not isinstance(value.type, ir.TensorType):
        return Port(name_of(value), "unknown", None)
    unnamed = {ir.DataType.UNDEFINED: "unknown", ir.DataType.STRING: "str"}
    dtype = value.type.dtype
    return Port(name_of(value), unnamed.get(dtype) or dtype.numpy().name, dims(value))


def _promised(
    graph: Graph,
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None, dict[str, tuple[int, int | None]]]:
    text = graph.model.metadata_props.get(SIGNATURE)
    if text is None:
        return None, None, {}
    data = json.loads(text)
    bounds = {name: (low, high) for name, (low, high) in data.get("bounds", {}).items()}
    return tuple(data["inputs"]), tuple(data["outputs"]), bounds
