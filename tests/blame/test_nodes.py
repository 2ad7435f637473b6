"""What a node introduces, told from what it inherits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnxproof.blame.nodes import follow, measure_distance
from onnxproof.graph.evaluator import Evaluator


def test_distance():
    one = np.ones(3)
    assert measure_distance(one, one) == 0
    assert measure_distance(one * 1.1, one) == pytest.approx(0.05)
    assert measure_distance(np.array([np.nan, 1, 1]), one) == np.inf
    assert measure_distance(np.array([1, 2]), np.array([1, 3])) == 1
    assert measure_distance(np.ones((1, 3)), one) == 0
    assert measure_distance(np.ones(4), one) == np.inf


def test_infinities_beyond_float32_are_the_same():
    assert measure_distance(np.array([np.inf]), np.array([1e300])) == 0
    assert measure_distance(np.array([3.4028234663852886e38]), np.array([np.inf])) == 0
    assert measure_distance(np.array([1.0]), np.array([np.inf])) == np.inf


def test_errors_travel_only_where_they_are_let():
    text = '<ir_version: 10, opset_import: ["" : 20]> g (double[N] x) => (double[N] y) { a = Neg(x) b = Abs(a) y = Add(b, b) }'
    evaluator = Evaluator.exact(onnx.parser.parse_model(text), keep_lossy_casts=True)
    x = np.array([1.0, -2.0])
    truth = {"b": np.array([1.0, 2.2]), "y": np.array([2.0, 4.4])}
    values: dict[str, np.ndarray] = {}
    replaced = {one.op: one.error for one in follow(evaluator, {"x": x}, truth, values)}
    assert replaced["Abs"] > 0.01
    assert replaced["Add"] == 0
    assert list(values) == ["a"]
    travelled = {one.op: one.error for one in follow(evaluator, {"x": x}, truth, replace=False)}
    assert travelled["Add"] > 0.01


def test_a_graph_that_is_left_to_itself_ends_where_a_node_refuses():
    """What comes after it has no answer: with the true values put in its place the graph would look right."""
    text = '<ir_version: 10, opset_import: ["" : 20]> g (double[N] x) => (double[N] y) { a = Concat<axis = 0>(x, x) b = Add(a, x) y = Neg(b) }'
    evaluator = Evaluator.exact(onnx.parser.parse_model(text), keep_lossy_casts=True)
    x = np.array([1.0, -2.0])
    truth = {"a": x, "b": 2 * x, "y": -2 * x}
    held = {one.op: one.error for one in follow(evaluator, {"x": x}, truth)}
    assert held == {"Concat": np.inf, "Add": 0, "Neg": 0}
    free = {one.op: one.error for one in follow(evaluator, {"x": x}, truth, replace=False)}
    assert free == {"Concat": np.inf, "Add": np.inf}


def _follow(body: str, x: np.ndarray, truth: dict[str, np.ndarray]) -> dict[str, float]:
    text = f'<ir_version: 10, opset_import: ["" : 20]> g (double[N] x) => (double[N] y) <int64[1] two = {{2}}, float one = {{1.0}}> {{ {body} }}'
    evaluator = Evaluator.exact(onnx.parser.parse_model(text), keep_lossy_casts=True)
    return {one.value: one.error for one in follow(evaluator, {"x": x}, truth)}


def test_what_nobody_takes_is_nobodys_error():
    found = _follow("v, i = TopK(x, two) y = Neg(i)", np.ones(3), {"v": np.zeros(2), "i": np.array([0, 1])})
    assert found == {"i": 0.0}


def test_of_equal_values_either_place_is_right():
    body = "v, i = TopK(x, two) w = Neg(v) y = Neg(i)"
    assert _follow(body, np.ones(3), {"v": np.ones(2), "i": np.array([2, 1])}) == {"v": 0.0}
    assert _follow(body, np.arange(3.0), {"v": np.array([2.0, 0.0]), "i": np.array([2, 0])})["i"] == 1


def test_a_sum_loses_little_beside_its_terms():
    x = np.array([1000.0, -3.0])
    body = "m = ReduceMean<keepdims = 1>(x) a = Sub(x, m) y = Neg(a)"
    assert _follow(body, x, {"a": x - x.mean() + 1e-6})["a"] == 0
    assert _follow(body, x, {"a": x - x.mean() + 1e-2})["a"] > 1e-6
    assert _follow(body, np.zeros(2), {"m": np.array([1e-9])})["m"] > 0.1


def test_a_wrong_shape_or_dtype_is_its_own_nodes_error_only():
    x = np.array([3.0, -1.0, 2.0])
    body = "v, i = TopK(x, two) w = Neg(v) y = Abs(w)"
    right = {"v": np.array([3.0, 2.0, -1.0]), "w": np.array([-3.0, -2.0, 1.0]), "y": np.array([3.0, 2.0, 1.0])}
    assert _follow(body, x, right) == {"v": np.inf, "w": 0.0, "y": 0.0}
    body = "b = Greater(x, one) y = Identity(b)"
    assert _follow(body, x, {"b": x, "y": x}) == {"b": 1.0, "y": 0.0}
