"""Files that onnx_ir does not read as they are: broken ones, and a few right ones with types that it has no word for."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
import onnx_ir as ir

from onnxproof.graph.file import list_subgraphs


def mend(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every name is written once and what onnx_ir has no word for has no type: enough to look at it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _mend_graph(copy.graph)
    for function in copy.functions:
        _mend_nodes(function.node, set(function.input))
        _mend_attributes(function.attribute_proto)
        written = {*function.input, *(name for node in function.node for name in node.output)}
        kept = [name for name in function.output if name in written]
        del function.output[:]
        function.output.extend(kept)
    return copy


def _mend_graph(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type and not _known(value.type.tensor_type.elem_type):
            value.type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
        elif not _readable(value):
            value.ClearField("type")
    for tensor in graph.initializer:
        if not _known(tensor.data_type):
            tensor.data_type = onnx.TensorProto.UNDEFINED
    _mend_nodes(graph.node, {*(v.name for v in graph.input), *(t.name for t in graph.initializer)})


def _mend_nodes(nodes: Iterable[onnx.NodeProto], written: set[str]) -> None:
    for node in nodes:
        for place in range(len(node.output)):
            while node.output[place] and node.output[place] in written:
                node.output[place] += " again"
            written.add(node.output[place])
        for graph in list_subgraphs(node):
            _mend_graph(graph)
        _mend_attributes(node.attribute)


def _mend_attributes(attributes: Iterable[onnx.AttributeProto]) -> None:
    for attribute in attributes:
        if not attribute.HasField("g") and not attribute.graphs and not _readable(attribute):
            attribute.type = onnx.AttributeProto.UNDEFINED


def _known(dtype: int) -> bool:
    return dtype in ir.DataType._value2member_map_


def _readable(part: onnx.ValueInfoProto | onnx.AttributeProto) -> bool:
    try:
        ir.from_proto(part)
    except Exception:
        return False
    return True
