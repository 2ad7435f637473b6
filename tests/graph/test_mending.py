"""Broken files, mended enough to look at them."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from onnxproof.graph.mending import mend


def twice() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))


def test_a_name_that_is_written_twice_gets_another_one():
    model = twice()
    copy = mend(model)
    assert [list(node.output) for node in copy.graph.node] == [["y"], ["y again"]]
    assert list(model.graph.node[1].output) == ["y"]


def test_unknown_types_are_undefined_and_the_rest_is_kept():
    model = twice()
    model.graph.input[0].type.tensor_type.elem_type = 999
    model.graph.initializer.append(TensorProto(name="w", data_type=998, dims=[1]))
    copy = mend(model)
    assert copy.graph.input[0].type.tensor_type.elem_type == TensorProto.UNDEFINED
    assert copy.graph.initializer[0].data_type == TensorProto.UNDEFINED
    assert copy.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT


def test_an_output_of_a_function_that_nothing_writes_is_left_out():
    model = twice()
    body = [helper.make_node("Relu", ["a"], ["b"])]
    imports = [helper.make_opsetid("", 18)]
    model.functions.append(helper.make_function("own", "F", ["a"], ["b", "nowhere"], body, imports))
    copy = mend(model)
    assert list(copy.functions[0].output) == ["b"]
    assert len(ir.from_proto(copy).functions) == 1
