"""The one view of a graph: uses, constants, traversal, what is made of it, and files that are broken."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxproof.errors import FindingError
from onnxproof.graph.view import Graph, label_node, list_names, list_subgraphs, list_taken, read_dims, read_name

IF = (
    "y = If(yes) <then_branch = t () => (float[2] t) { t = Add(x, a) }, "
    "else_branch = e () => (float[2] e) { k = Neg(x) e = Abs(k) }>"
)


def parsed(body: str, ends: str = "(float[N, 2] x) => (float[N, 2] y)", stored: str = "") -> Graph:
    text = f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {stored} {{ {body} }}'
    return Graph(onnx.parser.parse_model(text))


def ops(nodes) -> list[str]:
    return [node.op_type for node in nodes]


# --- who writes, who reads


def test_inputs_are_those_that_are_no_weights():
    graph = parsed("y = Add(x, w)", "(float[2] x, float[2] w) => (float[2] y)", "<float[2] w = {1, 2}>")
    assert list_names(graph.inputs) == ["x"]
    assert list_names(graph.outputs) == ["y"]


def test_a_writer_and_what_a_value_is_computed_from():
    graph = parsed("a = Neg(x) b = Abs(x) y = Relu(a)")
    writer = graph.writer("y")
    assert writer is not None
    assert (label_node(writer), list_names(writer.inputs)) == ("y", ["a"])
    assert graph.writer("x") is None
    assert ops(node for node in graph.nodes if node in graph.before(*graph.outputs)) == ["Neg", "Relu"]


def test_what_a_branch_reads_belongs_to_its_node():
    graph = parsed(f"a = Neg(x) b = Abs(x) {IF}", "(float[2] x, bool yes) => (float[2] y)")
    (branching,) = (node for node in graph.nodes if node.op_type == "If")
    assert sorted({read_name(value) for value in list_taken(branching)}) == ["a", "k", "x", "yes"]
    assert len(list(list_subgraphs(branching))) == 2
    assert ops(node for node in graph.nodes if node in graph.before(*graph.outputs)) == ["Neg", "If"]


def test_every_node_is_seen_those_of_branches_and_functions_too():
    graph = parsed(f"a = Neg(x) {IF}", "(float[2] x, bool yes) => (float[2] y)")
    assert ops(graph.nodes) == ["Neg", "If"]
    assert ops(graph.all_nodes) == ["Neg", "If", "Add", "Neg", "Abs"]
    function = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], [])
    graph.proto.functions.append(function)
    again = Graph(graph.proto)
    assert ops(again.all_nodes)[-1] == "Exp"
    assert "Exp" not in ops(again.running)


@pytest.mark.parametrize(("stored", "left"), [("1", "Add"), ("0", "Abs")])
def test_a_branch_that_a_stored_condition_never_takes_does_not_run(stored, left):
    graph = parsed(f"a = Neg(x) {IF}", "(float[2] x) => (float[2] y)", f"<bool yes = {{{stored}}}>")
    running = set(ops(graph.running)) & {"Add", "Abs"}
    assert running == {left}


def test_a_condition_that_is_computed_decides_nothing():
    graph = parsed(f"a = Neg(x) {IF}", "(float[2] x, bool yes) => (float[2] y)")
    assert {"Add", "Abs"} <= set(ops(graph.running))


def test_a_name_that_nothing_writes_is_told_with_its_reader():
    graph = parsed("y = Add(x, nowhere)")
    assert [(node.op_type, name) for node, name in graph.unwritten] == [("Add", "nowhere")]
    assert parsed("y = Relu(a) a = Neg(x)").unwritten == []


def test_a_sparse_weight_is_written():
    graph = parsed("y = Add(x, w)")
    values, indices = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]), helper.make_tensor("", 7, [1], [0])
    graph.proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    assert Graph(graph.proto).unwritten == []


# --- what is stored


def test_a_constant_is_found_wherever_it_stands():
    graph = parsed(
        "a = Constant <value = float[1] {0.5}>() b = Constant <value_float = 0.25>() c = Identity(w) "
        "d = Cast <to = 7>(c) e = Cast <to = 1>(d) f = Neg(w) y = Add(x, a)",
        stored="<float[1] w = {2.5}>",
    )
    found = {name: None if (a := graph.constant(v)) is None else a.item() for name, v in graph.values.items()}
    assert found == {"w": 2.5, "a": 0.5, "b": 0.25, "c": 2.5, "d": 2, "e": 2.0, "f": None, "x": None, "y": None}
    assert {name: number.item() for name, number in graph.scalars.items()} == {
        name: number for name, number in found.items() if number is not None
    }


def test_a_large_tensor_is_no_constant_and_can_be_read():
    graph = parsed("y = Add(x, w)")
    graph.proto.graph.initializer.append(numpy_helper.from_array(np.arange(100, dtype=np.float32), "w"))
    graph = Graph(graph.proto)
    assert graph.constant(graph.values["w"]) is None
    ((name, tensor),) = graph.tensors()
    array = graph.array(tensor)
    assert name == "w"
    assert array is not None
    assert array[99] == 99


def test_identities_in_a_circle_are_no_constant():
    graph = parsed("a = Identity(b) b = Identity(a) y = Add(x, a)")
    assert graph.constant(graph.values["a"]) is None


def test_weights_in_another_file_are_read_where_they_are(tmp_path):
    model = parsed("y = Add(x, w)").proto
    model.graph.initializer.append(numpy_helper.from_array(np.float32([1, 2]), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    graph = Graph.read(tmp_path / "m.onnx")
    ((_, tensor),) = graph.tensors()
    assert isinstance(tensor, ir.ExternalTensor)
    assert graph.array(tensor).tolist() == [1, 2]
    assert tensor.raw is None  # the file is not kept open
    (tmp_path / "weights.bin").unlink()
    assert graph.array(tensor) is None


# --- what is known


def test_types_and_shapes_are_inferred_without_the_weights():
    graph = parsed("a = MatMul(x, w) y = Relu(a)", "(float[N, 2] x) => (float[N, 3] y)")
    graph.proto.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3), np.float32), "w"))
    graph = Graph(graph.proto)
    assert graph.types["a"] == TensorProto.FLOAT
    assert graph.shapes["a"] == ("N", 3)
    assert read_dims(graph.inputs[0]) == ("N", 2)


def test_the_opset_is_that_of_the_standard_however_it_is_called():
    model = parsed("y = Relu(x)").proto
    model.opset_import[0].domain = "ai.onnx"
    model.graph.node[0].domain = "ai.onnx"
    assert Graph(model).opset == 20
    assert Graph(model).nodes[0].domain == ""


# --- models made of it


def run(model: bytes, **inputs):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))


X = np.array([[1.0, -2.0]], np.float32)


def test_inner_values_are_shown_alone_or_besides_the_outputs():
    graph = parsed("a = Neg(x) b = Abs(a) y = Add(a, b)")
    assert {name: value.tolist() for name, value in run(graph.showing(["a"]), x=X).items()} == {"a": [[-1.0, 2.0]]}
    assert list(run(graph.showing(["b"], besides=True), x=X)) == ["y", "b"]
    assert list_names(graph.outputs) == ["y"]


def test_a_piece_is_a_model_of_its_own_and_leaves_the_graph_alone():
    graph = parsed("a = Neg(x) b = Add(a, w) y = Abs(b)", stored="<float[2] w = {1, 2}>")
    piece = graph.piece([graph.values["a"]], [graph.values["b"]])
    assert ops(piece.graph) == ["Add"]
    piece.graph.initializers["w"].name = "renamed"
    made = ir.to_proto(piece).SerializeToString()
    assert run(made, a=X)["b"].tolist() == [[2.0, 0.0]]
    assert graph.proto.graph.initializer[0].name == "w"
    assert list(graph.main.initializers) == ["w"]


# --- files that are broken, and right ones that onnx_ir has no word for


def test_a_name_that_is_written_twice_can_be_looked_at(caplog):
    graph = parsed("y = Relu(x) y = Neg(x)")
    with caplog.at_level(logging.WARNING):
        assert ops(graph.nodes) == ["Relu", "Neg"]
    assert [list_names(node.outputs) for node in graph.nodes] == [["y"], ["y again"]]
    assert not caplog.records
    assert [list(node.output) for node in graph.proto.graph.node] == [["y"], ["y"]]


def mapping() -> onnx.TypeProto:
    """What classifiers of scikit-learn return."""
    listed = onnx.TypeProto()
    listed.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    listed.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    return listed


def test_types_without_a_word_are_left_out():
    graph = parsed("y = Add(x, w)", stored="<float[2] w = {1, 2}>")
    graph.proto.graph.initializer[0].data_type = 77
    graph.proto.graph.output.append(onnx.ValueInfoProto(name="x", type=mapping()))
    graph.proto.graph.node[0].attribute.append(helper.make_attribute("words", [b"\xff"]))
    again = Graph(graph.proto)
    assert ops(again.nodes) == ["Add"]
    assert list(again.nodes[0].attributes) == ["words"]
    assert again.types["w"] == 77


def test_a_function_that_does_not_write_its_result_can_be_looked_at():
    graph = parsed("y = Relu(x)")
    body = [helper.make_node("Exp", ["a"], ["b"])]
    graph.proto.functions.append(helper.make_function("my", "F", ["a"], ["c"], body, []))
    assert ops(Graph(graph.proto).all_nodes) == ["Relu", "Exp"]


def test_what_cannot_be_looked_at_is_a_finding():
    graph = parsed("y = Relu(x)")
    function = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], [])
    function.value_info.append(onnx.ValueInfoProto(name="b", type=mapping()))
    graph.proto.functions.append(function)
    with pytest.raises(FindingError, match="Map types") as caught:
        _ = Graph(graph.proto).nodes
    assert (caught.value.finding.code, caught.value.finding.severity) == ("OX306", "review")


def test_a_constant_of_a_type_that_never_was_is_none():
    made = parsed("c = Constant <value = float {1.0}> () y = Add(x, c)")
    proto = onnx.ModelProto.FromString(made.proto.SerializeToString())
    proto.graph.node[0].attribute[0].t.data_type = -1
    graph = Graph(proto)
    assert graph.stored(graph.values["c"]) is None
