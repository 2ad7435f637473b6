"""Reading an ONNX file someone wrote, with an answer for every way it can be broken."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import onnx_ir as ir

from onnxproof.errors import FindingError
from onnxproof.findings import found
from onnxproof.graph.file import list_external_files
from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph, read_dims, read_name
from onnxproof.proof.artifact import Artifact, Port

# Key of the model's metadata under which onnxproof promises the names of inputs and outputs.
SIGNATURE = "onnxproof.signature"


class _Promise(msgspec.Struct, frozen=True):
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bounds: dict[str, tuple[int, int | None]] = {}


def read_artifact(path: Path, exporter: str = "unknown", **made: Any) -> Artifact:
    """The artifact in a file; a file that is no usable ONNX model is a finding."""
    return describe(Graph.read(path), exporter, **made)


def describe(graph: Graph, exporter: str = "unknown", **made: Any) -> Artifact:
    """The artifact in a file that was read already."""
    model, files = graph.model, [graph.path, *list_external_files(graph.path, graph.proto)]
    operators = (f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in graph.all_nodes)
    return Artifact(
        path=str(graph.path),
        exporter=exporter,
        opset=graph.opset,
        ir_version=int(model.ir_version),
        producer=f"{model.producer_name or ''} {model.producer_version or ''}".strip(),
        sha256=_hash(files),
        bytes=sum(file.stat().st_size for file in files),
        nodes=len(graph.nodes),
        operators=dict(Counter(operators).most_common()),
        inputs=tuple(_read_port(value) for value in graph.inputs),
        outputs=tuple(_read_port(value) for value in graph.outputs),
        precision=recognise_precision(graph),
        **_read_promise(model.metadata_props.get(SIGNATURE)),
        **made,
    )


def _hash(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return digest.hexdigest()


def _read_port(value: ir.Value) -> Port:
    if not isinstance(value.type, ir.TensorType):
        return Port(read_name(value), "unknown", None)
    unnamed = {ir.DataType.UNDEFINED: "unknown", ir.DataType.STRING: "str"}
    dtype = value.type.dtype
    return Port(read_name(value), unnamed.get(dtype) or dtype.numpy().name, read_dims(value))


def _read_promise(signature: str | None) -> dict[str, Any]:
    if signature is None:
        return {}
    try:
        promise = msgspec.json.decode(signature, type=_Promise)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FindingError(found("OX301", f"the metadata {SIGNATURE} are not what onnxproof writes: {error}")) from None
    return {"promised_inputs": promise.inputs, "promised_outputs": promise.outputs, "bounds": promise.bounds}
