"""The operators that run in place of one."""

from __future__ import annotations

import onnx

from onnxproof.graph.bodies import inline
from onnxproof.graph.view import Graph


def graph(body: str, opset: int = 20, kind: str = "float", functions: str = "") -> Graph:
    imports = f'"" : {opset}, "own" : 1'
    text = f"<ir_version: 10, opset_import: [{imports}]> g ({kind}[2] x) => ({kind}[2] y) {{ {body} }} {functions}"
    return Graph(onnx.parser.parse_model(text))


def ops(graph: Graph) -> list[str]:
    inside = inline(graph, graph.nodes[0])
    return [] if inside is None else [node.op_type for node in inside.nodes]


def test_a_function_of_the_file_is_taken_apart():
    functions = '<domain: "own", opset_import: ["" : 20]> F (a) => (b) { c = Neg(a) b = Abs(c) }'
    assert ops(graph("y = own.F(x)", functions=functions)) == ["Neg", "Abs"]


def test_a_body_of_the_standard_and_its_types():
    made = graph("y = Gelu(x)", kind="double")
    inside = inline(made, made.nodes[0])
    assert inside is not None
    assert "Erf" in [node.op_type for node in inside.nodes]
    assert inside.types["x"] == onnx.TensorProto.DOUBLE


def test_no_function_no_body():
    assert ops(graph("y = Relu(x)", opset=13)) == []
    assert ops(graph("y = own.Unknown(x)")) == []
    assert ops(graph("y = Relu(x)", opset=0)) == []  # an opset that never was


def test_a_body_is_used_only_while_its_operators_mean_what_they_meant():
    node = "y = MeanVarianceNormalization<axes = [0]>(x)"
    assert "ReduceMean" in ops(graph(node, opset=13))
    assert ops(graph(node, opset=17)) == []  # it calls Pow, which opset 15 changed
    assert "ReduceMean" in ops(graph(node, opset=18))  # the standard has another body from here on
