"""The one evaluator: what it shows, what it lets go on, what it drops."""

from __future__ import annotations

import weakref

import numpy as np
import onnx
import pytest

from onnxproof.errors import Rejected
from onnxproof.graph.evaluator import Evaluator, ReferenceRunner
from onnxproof.graph.widening import widen

X = {"x": np.array([1.0, -2.0])}


def parsed(body: str, ends: str = "(double[2] x) => (double[2] y)") -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')


CHAIN = "a = Neg(x) b = Abs(a) y = Add(a, b)"


def test_the_outputs_are_what_onnx_computes():
    assert Evaluator(parsed(CHAIN)).run(X)["y"].tolist() == [0.0, 4.0]


def test_what_is_ill_typed_is_told_in_the_words_of_onnx():
    mixed = parsed("y = Add(x, n)", "(double[2] x, int64[2] n) => (double[2] y)")
    with pytest.raises(Exception, match="Input type mismatch: float64 != int64"):
        Evaluator(mixed).run({**X, "n": np.array([1, 2])})


def test_a_single_number_is_an_array():
    made = Evaluator(parsed("y = ReduceSum <keepdims = 0> (x)", "(double[2] x) => (double y)")).compute(X)
    assert isinstance(made["y"], np.ndarray)
    assert made["y"] == -1.0


def test_whoever_looks_sees_every_node_in_order_with_its_arguments():
    seen = []

    def look(stop, results):
        seen.append((stop.op, list(stop.values), [np.asarray(a).tolist() for a in stop.arguments]))
        return results

    Evaluator(parsed(CHAIN)).run(X, look)
    assert [op for op, _, _ in seen] == ["Neg", "Abs", "Add"]
    assert seen[2] == ("Add", ["y"], [[-1.0, 2.0], [1.0, 2.0]])


def test_what_is_put_in_place_of_a_result_is_what_later_nodes_take():
    def replace(stop, results):
        return [np.array([10.0, 10.0])] if stop.op == "Abs" else results

    assert Evaluator(parsed(CHAIN)).run(X, replace)["y"].tolist() == [9.0, 12.0]


def test_a_node_that_raises_is_rescued_or_ends_the_run():
    model = parsed(
        "a = Neg(x) s = Shape(x) b = Reshape(a, bad) y = Abs(b)", "(double[2] x, int64[1] bad) => (double[2] y)"
    )
    feed = {**X, "bad": np.array([7])}
    with pytest.raises(ValueError, match="reshape"):
        Evaluator(model).run(feed)
    failed = []

    def rescue(stop, error):
        failed.append((stop.node, stop.op, type(error)))
        return [np.array([-3.0, 3.0])]

    assert Evaluator(model).run(feed, rescue=rescue)["y"].tolist() == [3.0, 3.0]
    assert failed == [("b", "Reshape", ValueError)]
    assert Evaluator(model).run(feed, rescue=lambda stop, error: None) == {}


def test_a_value_is_dropped_after_its_last_use():
    alive = {}

    def look(stop, results):
        (result,) = results
        alive[stop.values[0]] = weakref.ref(result)
        if stop.op == "Sqrt":
            assert alive["a"]() is None  # read by b alone
            assert alive["b"]() is not None  # the argument of this very node
        return results

    Evaluator(parsed("a = Abs(x) b = Add(a, a) y = Sqrt(b)")).run(X, look)
    assert "y" in alive


def test_what_a_subgraph_reads_is_kept_until_then():
    body = (
        "a = Neg(x) b = Abs(x) c = Abs(b) "
        "y = If(yes) <then_branch = t () => (double[2] t) { t = Identity(a) }, else_branch = e () => (double[2] e) { e = Abs(c) }>"
    )
    model = parsed(body, "(double[2] x, bool yes) => (double[2] y)")
    assert Evaluator(model).run({**X, "yes": np.array(True)})["y"].tolist() == [-1.0, 2.0]


def test_an_output_on_the_way_is_kept():
    model = parsed("a = Neg(x) y = Abs(a)", "(double[2] x) => (double[2] a, double[2] y)")
    assert list(Evaluator(model).run(X)) == ["a", "y"]


def test_float32_is_evaluated_in_float64_when_exact_and_as_it_is_otherwise():
    model = parsed("y = Add(x, c)", "(float[2] x) => (float[2] y)")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1e-9, 0]), "c"))
    exact = Evaluator.exact(model, keep_lossy_casts=False)
    assert exact.run({"x": np.array([1.0, 2.0])})["y"][0] > 1.0
    assert Evaluator(model).run({"x": np.float32([1, 2])})["y"][0] == 1.0
    assert model.graph.initializer[0].data_type == onnx.TensorProto.FLOAT


def test_weights_that_an_old_file_lists_as_inputs_need_not_be_fed():
    model = parsed("y = Add(x, c)", "(float[2] x, float[2] c) => (float[2] y)")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 1]), "c"))
    assert Evaluator(model).inputs == ["x"]
    assert ReferenceRunner(widen(model, keep_lossy_casts=False), {"x": "given"}).run({"given": np.float32([1, 2])})[
        "y"
    ].tolist() == [2.0, 3.0]


def test_what_the_evaluator_cannot_do_is_a_rejection():
    with pytest.raises(Rejected, match="NoSuch"):
        ReferenceRunner(parsed("y = NoSuch(x)"))
    apart = parsed("y = Add(x, z)", "(double[2] x, double[3] z) => (double[2] y)")
    with pytest.raises(Rejected, match="Add"):
        ReferenceRunner(apart).run({**X, "z": np.ones(3)})


def test_a_result_that_is_left_out_is_nobodys_input():
    """Both have the empty name: an RNN of which only the last state is taken, and one without lengths before it."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[4,2,3] x) => (float[1,2,3] y) <float[1,3,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}> {
        s, h = RNN <hidden_size = 3>(x, w, w)
        t = Squeeze(s, one)
        nothing, y = RNN <hidden_size = 3>(t, w, w)
        one = Constant <value_ints = [1]>()
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.node[2].output[0] = ""
    x = np.ones((4, 2, 3))
    assert Evaluator.exact(model, keep_lossy_casts=True).run({"x": x})["y"].shape == (1, 2, 3)
