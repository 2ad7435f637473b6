"""Edits of a graph that faults are made of. Each raises where there is nothing to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Change = Callable[[np.ndarray], np.ndarray]


# --- finding --------------------------------------------------------------------------------------------------------


def find(model: onnx.ModelProto, op: str, index: int = 0) -> onnx.NodeProto:
    """The node of an operator, by its place among those of the same operator."""
    nodes = [node for node in model.graph.node if node.op_type == op]
    if not -len(nodes) <= index < len(nodes):
        raise LookupError(f"the graph has {len(nodes)} {op}, not a number {index}")
    return nodes[index]


def producer(model: onnx.ModelProto, value: str) -> onnx.NodeProto:
    """The node that makes a value."""
    for node in model.graph.node:
        if value in node.output:
            return node
    raise LookupError(f"no node makes {value}")


def consumer(model: onnx.ModelProto, value: str, op: str | None = None) -> onnx.NodeProto:
    """The first node that reads a value."""
    for node in model.graph.node:
        if value in node.input and op in (None, node.op_type):
            return node
    raise LookupError(f"no {op or 'node'} reads {value}")


def initializer(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    """A weight or constant by name."""
    for tensor in model.graph.initializer:
        if tensor.name == name:
            return tensor
    raise LookupError(f"there is no initializer {name}")


def array(model: onnx.ModelProto, name: str) -> np.ndarray:
    """A copy of an initializer's values."""
    return numpy_helper.to_array(initializer(model, name)).copy()


def get(node: onnx.NodeProto, name: str) -> Any:
    """An attribute's value."""
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    raise LookupError(f"{node.name} has no attribute {name}")


def fresh(model: onnx.ModelProto, stem: str) -> str:
    """A name that nothing in the graph has."""
    taken = {tensor.name for tensor in model.graph.initializer} | {value.name for value in model.graph.input}
    taken |= {name for node in model.graph.node for name in (node.name, *node.output)}
    return next(name for name in (f"{stem}_{i}" for i in range(len(taken) + 1)) if name not in taken)


# --- changing -------------------------------------------------------------------------------------------------------


def put(node: onnx.NodeProto, **attributes: Any) -> str:
    """Set attributes of a node."""
    for name, value in attributes.items():
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        if any(a.name == name and helper.get_attribute_value(a) == value for a in node.attribute):
            raise ValueError(f"{node.name} has {name} = {value} already")
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return node.name


def constant(model: onnx.ModelProto, value: Any, dtype: Any = None, stem: str = "changed") -> str:
    """Add a constant and return its name."""
    name = fresh(model, stem)
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype), name))
    return name


def edit(model: onnx.ModelProto, node: onnx.NodeProto, slot: int, change: Change) -> str:
    """Change the constant or weight that one node reads; other readers keep the old one."""
    before = array(model, node.input[slot])
    after = np.array(change(before.copy()), before.dtype, order="C")
    if before.shape == after.shape and np.array_equal(before, after):
        raise ValueError(f"the input {slot} of {node.name} stays the same")
    node.input[slot] = constant(model, after, stem=node.input[slot])
    return node.name


def become(node: onnx.NodeProto, op: str, inputs: Sequence[str] | None = None, **attributes: Any) -> str:
    """Turn a node into another operator with the same outputs."""
    node.op_type = op
    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    if inputs is not None:
        node.input[:] = inputs
    return node.name


def swap_inputs(node: onnx.NodeProto, first: int = 0, second: int = 1) -> str:
    """Exchange two inputs of a node."""
    node.input[first], node.input[second] = node.input[second], node.input[first]
    return node.name


def _add(model: onnx.ModelProto, place: int, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
    name = fresh(model, f"fault_{op}")
    model.graph.node.insert(place, helper.make_node(op, inputs, [output], name=name, **attributes))
    return name


def before(model: onnx.ModelProto, node: onnx.NodeProto, op: str, inputs: Sequence[str], **attributes: Any) -> str:
    """Add a node in front of another and return the name of what it makes."""
    output = fresh(model, f"fault_{op.lower()}")
    place = next(i for i, n in enumerate(model.graph.node) if n.name == node.name)
    _add(model, place, op, inputs, output, **attributes)
    return output


def after(model: onnx.ModelProto, value: str, op: str, *more: str, **attributes: Any) -> str:
    """Add a node that reads a value and takes its place, graph outputs included; return the new node's name."""
    node = producer(model, value)
    place = list(model.graph.node).index(node)
    inner = fresh(model, f"{value}_inner")
    node.output[:] = [inner if name == value else name for name in node.output]
    return _add(model, place + 1, op, [inner, *more], value, **attributes)


def bypass(model: onnx.ModelProto, node: onnx.NodeProto, slot: int = 0) -> str:
    """Let everyone read a node's input instead of its output; return the name of the node that now reads it."""
    value, instead = node.output[0], node.input[slot]
    if any(output.name == value for output in model.graph.output):
        raise ValueError(f"{node.name} makes an output of the graph")
    reader = consumer(model, value).name
    for other in model.graph.node:
        other.input[:] = [instead if name == value else name for name in other.input]
    model.graph.node.remove(node)
    return reader


def rename(model: onnx.ModelProto, old: str, new: str) -> None:
    """Rename a value everywhere."""
    found = False
    for node in model.graph.node:
        found |= old in node.input or old in node.output
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]
    for value in (*model.graph.input, *model.graph.output):
        if value.name == old:
            found, value.name = True, new
    if not found:
        raise LookupError(f"there is no value {old}")


# --- types and the graph's face -------------------------------------------------------------------------------------


def through_half(model: onnx.ModelProto, value: str, to: int = TensorProto.FLOAT16) -> str:
    """A value is stored in half precision and read back."""
    after(model, value, "Cast", to=TensorProto.FLOAT)
    cast = producer(model, value)
    cast.input[0] = before(model, cast, "Cast", [cast.input[0]], to=to)
    return cast.name


def half(values: np.ndarray) -> np.ndarray:
    """Rounded to float16."""
    return values.astype(np.float16).astype(values.dtype)


def bfloat(values: np.ndarray) -> np.ndarray:
    """Rounded to bfloat16 (to nearest, ties to even)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32).reshape(values.shape)


def int8(values: np.ndarray) -> np.ndarray:
    """Quantised to int8 with one scale, and back."""
    scale = np.abs(values).max() / 127
    return (np.round(values / scale) * scale).astype(values.dtype)


def output_type(model: onnx.ModelProto, name: str, to: int, shape: Sequence[int | str] | None = None) -> None:
    """Declare an output's element type (and shape)."""
    for value in model.graph.output:
        if value.name == name:
            value.CopyFrom(helper.make_tensor_value_info(name, to, shape))
            return
    raise LookupError(f"there is no output {name}")


def reorder(values: Any, names: Sequence[str]) -> None:
    """Put graph inputs or outputs into another order."""
    by_name = {value.name: onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in values}
    if list(by_name) == list(names) or set(by_name) != set(names):
        raise ValueError(f"{list(by_name)} cannot be reordered to {list(names)}")
    del values[:]
    values.extend(by_name[name] for name in names)
