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
