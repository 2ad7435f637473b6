"""Reading an ONNX file someone wrote, with an answer for every way it can be broken."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import onnx

from onnxproof.artifact.record import Artifact, Port, Size
from onnxproof.errors import FindingError, InputError
from onnxproof.findings import Finding, found

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


def load_model(path: Path, weights: bool = True) -> onnx.ModelProto:
    """Parse the file, or say what is wrong with it."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise FindingError(
            found(
                "OX301",
                f"{path.name} is not an ONNX model, or it is cut off: {type(error).__name__} while parsing its {path.stat().st_size} bytes",
                evidence={"error": str(error)[:500], "bytes": path.stat().st_size},
            )
        ) from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise FindingError(found("OX301", f"{path.name} holds no graph: it is empty or not an ONNX model"))
    _check_external(path, model)
    return onnx.load(str(path)) if weights else model


def external_files(path: Path, model: onnx.ModelProto) -> list[Path]:
    """The files beside the model that hold its weights."""
    places = {_location(tensor) for tensor in model.graph.initializer if tensor.external_data}
    return [path.parent / place for place in sorted(places) if (path.parent / place).is_file()]


def _location(tensor: onnx.TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def escapes(location: str) -> bool:
    """Whether a path is absolute, or leaves the folder that it starts in."""
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).is_absolute()
    return absolute or ".." in PurePosixPath(location.replace("\\", "/")).parts


def _bytes(tensor: onnx.TensorProto) -> int:
    """What the values of a tensor take, from its shape and type; 0 for types that are packed."""
    try:
        size = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError):
        return 0
    packed = onnx.TensorProto.DataType.Name(tensor.data_type).endswith(("INT4", "INT2", "4E2M1"))
    return 0 if packed else size * math.prod(tensor.dims)


def _check_external(path: Path, model: onnx.ModelProto) -> None:
    needed: dict[str, int] = {}
    for tensor in model.graph.initializer:
        if tensor.external_data:
            entries = {entry.key: entry.value for entry in tensor.external_data}
            end = int(entries.get("offset", 0)) + int(entries.get("length", 0) or _bytes(tensor))
            needed[entries.get("location", "")] = max(needed.get(entries.get("location", ""), 0), end)
    for place, end in needed.items():
        file = path.parent / place
        if escapes(place):
            message = f"{path.name} looks for its weights outside its folder, in {place!r}"
            raise FindingError(found("OX323", message, evidence={"location": place}))
        if not file.is_file():
            raise FindingError(
                found(
                    "OX302", f"{path.name} keeps its weights in {place!r}, and that file is not in the model's folder"
                )
            )
        if file.stat().st_size < end:
            raise FindingError(
                found("OX302", f"{place} has {file.stat().st_size} bytes and {path.name} needs {end}: it is cut off")
            )


def complaint(path: Path) -> Finding | None:
    """What the ONNX checker says against the file, if anything: onnxruntime may load it all the same."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        text = str(error).strip()
        # Custom operators and newer opsets are onnxruntime's to judge, not the checker's.
        if "No Op registered" in text or "No opset import" in text or "Unrecognized" in text:
            return None
        return found(
            "OX306",
            f"the ONNX checker complains: {text.splitlines()[0] if text else error!r}",
            evidence={"error": text[:1000]},
        )
    return None


def _hash(path: Path, model: onnx.ModelProto) -> str:
    digest = hashlib.sha256(path.read_bytes())
    for file in external_files(path, model):
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return digest.hexdigest()


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds: branches and bodies of loops."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs


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


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the standard operator set."""
    return max((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Graph inputs that are not weights (old files list both)."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


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
