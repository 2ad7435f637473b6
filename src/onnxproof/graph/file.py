"""An ONNX file on disk → a model, with an answer for every way it can be broken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from onnxproof.errors import FindingError, InputError, OnnxproofError
from onnxproof.findings import Finding, found
from onnxproof.graph.lightening import parse


def load_model(path: Path) -> onnx.ModelProto:
    """Parse the file, or say what is wrong with it; weights that lie in other files stay there, and large ones in this one."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        model = parse(path)
    except Exception as error:
        size = path.stat().st_size
        message = (
            f"{path.name} is not an ONNX model, or it is cut off: {type(error).__name__} while parsing its {size} bytes"
        )
        raise FindingError(found("OX301", message, evidence={"error": str(error)[:500], "bytes": size})) from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise FindingError(found("OX301", f"{path.name} holds no graph: it is empty or not an ONNX model"))
    _check_external(path, model)
    return model


def list_external_files(path: Path, model: onnx.ModelProto) -> list[Path]:
    """The files beside the model that hold its weights."""
    places = {_read_location(tensor) for tensor in _list_external(model)} - {path.name}
    return [path.parent / place for place in sorted(places) if (path.parent / place).is_file()]


def _list_external(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    return [tensor for tensor in model.graph.initializer if tensor.external_data]


def _read_location(tensor: onnx.TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def escapes(location: str) -> bool:
    """Whether a path is absolute, or leaves the folder that it starts in."""
    # By both systems' rules: a file may be written on one and read on the other.
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).is_absolute()
    return absolute or ".." in PurePosixPath(location.replace("\\", "/")).parts


def _count_bytes(tensor: onnx.TensorProto) -> int:
    """What the values of a tensor take, from its shape and type; 0 for types that are packed."""
    try:
        size = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError):
        return 0
    packed = onnx.TensorProto.DataType.Name(tensor.data_type).endswith(("INT4", "INT2", "4E2M1"))
    return 0 if packed else size * math.prod(tensor.dims)


def _parse_number(path: Path, tensor: onnx.TensorProto, key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        place = f"{path.name}: the {key} of the external data of {tensor.name!r}"
        raise FindingError(found("OX302", f"{place} begins with {text[:40]!r}; expected a number of bytes"))
    return int(text)


def _check_external(path: Path, model: onnx.ModelProto) -> None:
    needed: dict[str, int] = {}
    for tensor in _list_external(model):
        entries = {entry.key: entry.value for entry in tensor.external_data}
        offset, length = (_parse_number(path, tensor, key, entries.get(key) or "0") for key in ("offset", "length"))
        end = offset + (length or _count_bytes(tensor))
        needed[_read_location(tensor)] = max(needed.get(_read_location(tensor), 0), end)
    for place, end in needed.items():
        file = path.parent / place
        # Asked before the file is looked for: nothing outside the folder is touched.
        if escapes(place):
            message = f"{path.name} looks for its weights outside its folder, in {place!r}"
            raise FindingError(found("OX323", message, evidence={"location": place}))
        if not file.is_file():
            message = f"{path.name} keeps its weights in {place!r}, and that file is not in the model's folder"
            raise FindingError(found("OX302", message))
        if file.stat().st_size < end:
            message = f"{place} has {file.stat().st_size} bytes and {path.name} needs {end}: it is cut off"
            raise FindingError(found("OX302", message))


def find_complaint(path: Path) -> Finding | None:
    """What the ONNX checker says against the file, if anything: onnxruntime may load it all the same."""
    try:
        # By its path: a model above 2 GB, or with weights in other files, cannot be checked in memory.
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        text = str(error).strip()
        # Custom operators and newer opsets are onnxruntime's to judge, not the checker's.
        if "No Op registered" in text or "No opset import" in text or "Unrecognized" in text:
            return None
        message = f"the ONNX checker complains: {text.splitlines()[0] if text else error!r}"
        return found("OX306", message, evidence={"error": text[:1000]})
    return None


@contextmanager
def hold_against(path: Path) -> Iterator[None]:
    """Where reading a graph ends in an error that nobody foresaw: a file that the checker rejects is to blame, not the reader."""
    try:
        yield
    except (OnnxproofError, MemoryError):
        raise
    except UnicodeDecodeError as error:
        raise FindingError(found("OX301", f"{path.name}: a name or text in it is not UTF-8: {error}")) from error
    except Exception as error:
        complaint = find_complaint(path)
        if complaint is None:
            raise
        raise FindingError(replace(complaint, severity="block")) from error


def list_subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds: branches and bodies of loops."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
