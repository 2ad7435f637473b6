"""Types and shapes, without the weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnxproof.graph.inference import HEAVY, infer, infer_shapes, infer_types


def parsed(body: str, ends: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')


def test_a_heavy_weight_takes_no_part_and_tells_its_shape():
    model = parsed("a = MatMul(x, w) y = Relu(a)", "(float[N, 64] x) => (float[N, M] y)")
    weight = np.ones((64, 100), np.float32)
    assert weight.nbytes > HEAVY
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    graph = infer(model)
    assert not graph.initializer
    assert infer_shapes(graph)["a"] == ("N", 100)
    assert infer_shapes(graph)["w"] == (64, 100)
    assert infer_types(graph)["a"] == TensorProto.FLOAT


def test_a_light_one_is_read():
    model = parsed("y = Reshape(x, to)", "(float[N, 6] x) => (float[A, B, C] y)")
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 2, 3]), "to"))
    assert infer_shapes(infer(model))["y"][1:] == (2, 3)


def test_a_graph_that_cannot_be_inferred_keeps_what_it_declares():
    model = parsed("y = NoSuchOperator(x)", "(float[2] x) => (double y)")
    assert infer_types(infer(model)) == {"x": TensorProto.FLOAT, "y": TensorProto.DOUBLE}


def test_subgraphs_have_types_and_the_outer_name_wins():
    branch = "If(yes) <then_branch = t () => (double t) { t = Cast<to = 11>(x) }, else_branch = e () => (double x) { x = Cast<to = 11>(y) }>"
    types = infer_types(parsed(f"z = {branch}", "(float x, float y, bool yes) => (double z)").graph)
    assert (types["t"], types["x"]) == (TensorProto.DOUBLE, TensorProto.FLOAT)


def test_a_size_whose_name_is_no_text():
    value = onnx.helper.make_tensor_value_info("x", 1, ["ba?ch", 3])
    graph = onnx.GraphProto(input=[onnx.ValueInfoProto.FromString(value.SerializeToString().replace(b"?", b"\xb3"))])
    (first, second) = infer_shapes(graph)["x"]
    assert isinstance(first, str)
    assert second == 3
