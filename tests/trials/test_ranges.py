"""What can arise: ranges of values, from those of the inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnxproof.graph.evaluator import Evaluator
from onnxproof.request.specs import Range
from onnxproof.trials.pieces import show_values
from onnxproof.trials.ranges import bound_values

HEAD = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y) <float half = {0.5}, float four = {4.0}, int64[1] last = {1}, int64[4] sides = {0, 1, 0, 2}, float[3,3] w = {1, 2, -3, 0, 1, 0, 0.5, 0.5, 0.5}>
"""


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("{ y = Relu(x) }", 0, 10),
        ("{ z = Sigmoid(x)  y = Sub(z, half) }", -0.5, 0.5),
        ("{ y = Clip(x, half, four) }", 0.5, 4),
        ("{ c = ReduceMax<keepdims = 0>(x)  z = Abs(c)  y = Clip(x, half, z) }", 0, 10),
        ("{ y = MatMul(x, w) }", -35, 35),
        ("{ z = Abs(x)  y = Mul(z, half) }", 0, 5),
        ("{ c = Greater(x, half)  z = Sigmoid(x)  y = Where(c, z, half) }", 0, 1),
        ("{ s = Softmax(x)  y = Concat<axis = 0>(s, four2) }".replace("four2", "s"), 0, 1),
        ("{ c = Greater(x, four)  z = Sigmoid(x)  y = Where(c, x, z) }", 0, 10),
        ("{ c = Less(four, x)  z = Sigmoid(x)  y = Where(c, x, z) }", 0, 10),
        ("{ c = Less(x, half)  y = Where(c, x, half) }", -10, 0.5),
        ("{ z = Relu(x)  y = Pad(z, sides) }", 0, 10),
        ("{ z = Sigmoid(x)  y = Pad(z, sides, four) }", 0, 4),
        ("{ z = Floor(x)  y = Max(z, half) }", 0.5, 10),
    ],
)
def test_the_range_of_the_result(body, low, high):
    evaluator = Evaluator.exact(onnx.parser.parse_model(HEAD + body), keep_lossy_casts=True)
    x = np.linspace(-10, 10, 6).reshape(2, 3)
    found = bound_values(evaluator, {"x": Range(-10, 10)}, show_values(evaluator, {"x": x}))["y"]
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("body", ["{ z = Reciprocal(x)  y = Identity(z) }", "{ y = Tan(x) }"])
def test_what_is_not_known_is_left_open(body):
    evaluator = Evaluator.exact(onnx.parser.parse_model(HEAD + body), keep_lossy_casts=True)
    found = bound_values(evaluator, {"x": Range(-10, 10)}, show_values(evaluator, {"x": np.ones((2, 3))}))["y"]
    assert not np.isfinite([found.low, found.high]).any()
