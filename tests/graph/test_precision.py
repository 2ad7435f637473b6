"""Which precision a file has chosen."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

from lowered import lower
from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph

TOLD = {
    "float32": None,
    "int8 dynamic": "int8 dynamic, 3 of 3 MatMuls; weights per channel",
    "int8 static": "int8 static, 3 of 3 Gemms; weights per channel",
    "int8 operators": "int8 static, 3 of 3 Gemms; weights per tensor",
    "float16": "float16, 6 of 6 weights",
    "float16 throughout": "float16, 6 of 6 weights; inputs and outputs in float16",
    "int4 weights": "int4 weights, 3 of 3 MatMuls; weights per channel",
}


@pytest.mark.parametrize("kind", TOLD)
def test_it_is_said_in_a_line(kind):
    precision = recognise_precision(Graph.read(lower(kind)))
    assert (precision and precision.text) == TOLD[kind]
    assert precision is None or not precision.declared


def test_weights_that_are_turned_after_they_were_quantised_are_no_activations(tmp_path):
    """The head of a language model is its table of words, turned around."""
    words = np.random.default_rng(0).standard_normal((40, 16)).astype("f4")
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["x"], "look up"),
        helper.make_node("MatMul", ["x", "mix"], ["mixed"], "mix"),
        helper.make_node("Transpose", ["words"], ["head"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["mixed", "head"], ["y"], "score"),
    ]
    ends = [("ids", TensorProto.INT64, [2, 5]), ("y", TensorProto.FLOAT, [2, 5, 40])]
    stored = [numpy_helper.from_array(words, "words"), numpy_helper.from_array(words[:16], "mix")]
    given, made = ([helper.make_tensor_value_info(*end)] for end in ends)
    graph = helper.make_graph(nodes, "tied", given, made, stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "lower.onnx")
    lowered = Graph.read(tmp_path / "lower.onnx")
    assert any(n.op_type == "DequantizeLinear" and n.inputs[0].const_value is None for n in lowered.all_nodes)
    assert recognise_precision(lowered).kind == "int8 dynamic"
    assert recognise_precision(lowered).operators == {"MatMul": (2, 2)}


def test_products_that_stay_in_float_are_counted():
    graph = Graph.read(lower("int8 dynamic"))
    precision = recognise_precision(graph)
    assert precision is not None
    assert precision.operators == {"MatMul": (3, 3)}
    assert precision.kind == "int8 dynamic"
