"""A file without its large weights: they are left where they are, so that no copy of the graph is a copy of them.

A file that holds its weights itself is read as if they lay in another file, which happens to be the same one: then every
model comes in one form, and a session finds the weights by itself.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

# Bytes from which on a tensor stays in the file.
LARGE = 1 << 20
# Bytes of a file from which on it is read without them.
HEAVY = 64 << 20
# Numbers of the fields on the way, in onnx.proto: they never change.
GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
# How the wire format marks a field that tells its length.
BYTES = 2


@dataclass(frozen=True)
class _Field:
    """A field: its number, where it starts, and where its content starts and ends."""

    number: int
    start: int
    content: int
    end: int


def parse(path: Path) -> onnx.ModelProto:
    """The model in a file; the large tensors of a heavy one are said to lie in it."""
    if path.stat().st_size < HEAVY:
        return onnx.load(str(path), load_external_data=False)
    # Mapped: the pages that hold large weights are never read.
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        light = b"".join(_lighten_model(data, path.name))
    model = onnx.ModelProto()
    model.ParseFromString(light)
    return model


def _lighten_model(data: mmap.mmap, name: str) -> Iterator[bytes]:
    for field in _read_fields(data, 0, len(data)):
        graph = field.number == GRAPH
        yield _tag(GRAPH, b"".join(_lighten_graph(data, field, name))) if graph else data[field.start : field.end]


def _lighten_graph(data: mmap.mmap, graph: _Field, name: str) -> Iterator[bytes]:
    for field in _read_fields(data, graph.content, graph.end):
        large = field.number == INITIALIZER and field.end - field.content >= LARGE
        yield _tag(INITIALIZER, _lighten_tensor(data, field, name)) if large else data[field.start : field.end]


def _lighten_tensor(data: mmap.mmap, tensor: _Field, name: str) -> bytes:
    """The tensor with the place of its values instead of them."""
    parts, place = [], onnx.TensorProto()
    for field in _read_fields(data, tensor.content, tensor.end):
        if field.number != RAW_DATA:
            parts.append(data[field.start : field.end])
            continue
        place.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", name), ("offset", field.content), ("length", field.end - field.content)):
            place.external_data.add(key=key, value=str(value))
    # Parts of a message may be joined as bytes: protobuf reads them as one.
    return b"".join([*parts, place.SerializeToString()])


def join_model(light: onnx.ModelProto, heavy: Mapping[str, Callable[[], bytes]]) -> Iterator[bytes]:
    """The file of a model whose large tensors are elsewhere, with these in it again; each is asked for its values when it is written."""
    tensors = [tensor for tensor in light.graph.initializer if tensor.name in heavy]
    rest = strip_initializers(light)
    rest.graph.initializer.extend(tensor for tensor in light.graph.initializer if tensor.name not in heavy)
    graph = rest.graph.SerializeToString()
    rest.ClearField("graph")
    heads = [_begin_tensor(tensor) for tensor in tensors]
    yield rest.SerializeToString()
    yield _begin(GRAPH, len(graph) + sum(len(head) + size for head, size in heads)) + graph
    for tensor, (head, size) in zip(tensors, heads, strict=True):
        values = heavy[tensor.name]()
        if len(values) != size:
            raise ValueError(f"{tensor.name} has {len(values)} bytes and said {size}")
        yield head
        yield values


def _begin_tensor(tensor: onnx.TensorProto) -> tuple[bytes, int]:
    """All of an initializer but its values, and how many bytes these are."""
    told = {entry.key: entry.value for entry in tensor.external_data}
    inner, size = onnx.TensorProto(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name), int(told["length"])
    content = inner.SerializeToString() + _begin(RAW_DATA, size)
    return _begin(INITIALIZER, len(content) + size) + content, size


def _begin(number: int, length: int) -> bytes:
    """What stands before the content of a field."""
    return _encode_number(number << 3 | BYTES) + _encode_number(length)


def _tag(number: int, content: bytes) -> bytes:
    return _begin(number, len(content)) + content


def _encode_number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_fields(data: mmap.mmap, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        key, at = _decode_number(data, at)
        kind = key & 7
        if kind == BYTES:
            length, at = _decode_number(data, at)
        elif kind == 0:
            length = _decode_number(data, at)[1] - at
        else:
            length = {1: 8, 5: 4}[kind]
        if at + length > end:
            raise ValueError(f"a field of {length} bytes at {at} goes beyond the end")
        yield _Field(key >> 3, start, at, at + length)
        at += length


def _decode_number(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of varying length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(f"no number at {at}")


def strip_initializers(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of everything else: the weights must not be copied to be left out."""
    light = onnx.ModelProto()
    for field, value in proto.ListFields():
        if field.name != "graph":
            _put(light, field.name, value)
    for field, value in proto.graph.ListFields():
        if field.name != "initializer":
            _put(light.graph, field.name, value)
    return light


def _put(message: onnx.ModelProto | onnx.GraphProto, name: str, value: object) -> None:
    held = getattr(message, name)
    if hasattr(held, "MergeFrom"):
        held.MergeFrom(value)
    else:
        setattr(message, name, value)
