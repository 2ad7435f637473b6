"""Reading an ONNX file someone wrote, with an answer for every way it can be broken."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from onnxproof.graph.file import external_files, load_model, opset_of, real_inputs, subgraphs
from onnxproof.proof.artifact import Artifact, Port, Size

SIGNATURE = "onnxproof.signature"
"""Key of the model's metadata under which onnxproof promises the names of inputs and outputs."""


def read_artifact(path: Path, exporter: str = "unknown", **made: Any) -> Artifact:
    """The artifact in a file; a file that is no usable ONNX model is a finding."""
    model = load_model(path, weights=False)
    promised = _promised(model)
    return Artifact(
        path=str(path),
        exporter=exporter,
        opset=opset_of(model),
        ir_version=int(model.ir_version),
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        sha256=_hash(path, model),
        bytes=path.stat().st_size + sum(f.stat().st_size for f in external_files(path, model)),
        nodes=len(model.graph.node),
        operators=_operators(model),
        inputs=tuple(_port(value) for value in real_inputs(model.graph)),
        outputs=tuple(_port(value) for value in model.graph.output),
        promised_inputs=promised[0],
        promised_outputs=promised[1],
        bounds=promised[2],
        **made,
    )


def _hash(path: Path, model: onnx.ModelProto) -> str:
    digest = hashlib.sha256(path.read_bytes())
    for file in external_files(path, model):
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return digest.hexdigest()


def _operators(model: onnx.ModelProto) -> dict[str, int]:
    """How many nodes of each operator there are, in subgraphs and local functions too; the most frequent first."""
    counts: Counter[str] = Counter()
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        counts[f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type] += 1
        for graph in subgraphs(node):
            waiting += graph.node
    return dict(counts.most_common())


def _port(value: onnx.ValueInfoProto) -> Port:
    tensor = value.type.tensor_type
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    except (KeyError, ValueError, TypeError):
        dtype = "unknown"
    if tensor.elem_type == onnx.TensorProto.STRING:
        dtype = "str"
    shape = tuple(_size(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return Port(value.name, dtype, shape)


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param else None


def _promised(
    model: onnx.ModelProto,
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None, dict[str, tuple[int, int | None]]]:
    for entry in model.metadata_props:
        if entry.key == SIGNATURE:
            data = json.loads(entry.value)
            bounds = {name: (low, high) for name, (low, high) in data.get("bounds", {}).items()}
            return tuple(data["inputs"]), tuple(data["outputs"]), bounds
    return None, None, {}
