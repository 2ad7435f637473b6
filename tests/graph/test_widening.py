"""Every float of a graph in float64, wherever it stands."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.widening import nudge_constants, widen, widen_array


def parsed(body: str, ends: str = "(float[2] x) => (float[2] y)") -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')


X = {"x": np.array([1.0, 2.0])}


def value(body: str, ends: str = "(float[2] x) => (float[2] y)", **inputs: np.ndarray) -> np.ndarray:
    return Evaluator.exact(parsed(body, ends), keep_lossy_casts=False).run({**X, **inputs})["y"]


def test_constants_of_nodes_and_casts_are_widened():
    assert value("c = Constant <value = float[1] {1e-9}>() y = Add(x, c)")[0] > 1.0
    assert value("c = Constant <value_float = 1.0e-9>() y = Add(x, c)")[0] > 1.0
    assert value("s = Shape(x) c = ConstantOfShape(s) y = Add(x, c)").dtype == np.float64
    assert value("i = Cast <to = 7>(x) y = Cast <to = 1>(i)").dtype == np.float64


def test_branches_are_widened():
    body = (
        "y = If(yes) <then_branch = t () => (float[2] t) { c = Constant <value = float[1] {1e-9}>() t = Add(x, c) }, "
        "else_branch = e () => (float[2] e) { e = Identity(x) }>"
    )
    assert value(body, "(float[2] x, bool yes) => (float[2] y)", yes=np.array(True))[0] > 1.0


def test_an_operator_that_the_evaluator_would_expand_with_float32_constants_is_written_out():
    x = np.array([0.1, 0.2])
    exact = Evaluator.exact(parsed("y = Mish(x)"), keep_lossy_casts=False).run({"x": x})["y"]
    assert np.abs(exact - x * np.tanh(np.log1p(np.exp(x)))).max() < 1e-15


def test_floats_are_widened_and_nothing_else():
    assert widen_array(np.float32([1])).dtype == np.float64
    assert widen_array(numpy_helper.to_array(onnx.helper.make_tensor("", TensorProto.BFLOAT16, [1], [1.0]))).dtype == (
        np.float64
    )
    assert widen_array(np.array([1])).dtype == np.int64
    assert widen_array(np.array([True])).dtype == np.bool_


def test_round_numbers_are_not_moved_and_others_are():
    assert (
        nudge_constants(
            widen(parsed("c = Constant <value = float[1] {0.5}>() y = Mul(x, c)"), keep_lossy_casts=True), set(), 1
        )
        is None
    )
    moved = nudge_constants(
        widen(parsed("c = Constant <value = float[1] {0.1}>() y = Mul(x, c)"), keep_lossy_casts=True), set(), 1
    )
    assert moved is not None
    change = numpy_helper.to_array(moved.graph.node[0].attribute[0].t)[0] / np.float32(0.1) - 1
    assert 0 < abs(change) < 1e-6


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("y = Selu(x)", True),
        ("y = LeakyRelu(x)", True),
        ("y = Elu(x)", False),
        ("c = Constant <value = float[1] {1e25}>() y = Mul(x, c)", True),
        ("c = Constant <value = float[1] {12.5}>() y = Mul(x, c)", False),
        ("c = Constant <value = float[1] {100003.0}>() y = Mul(x, c)", False),
        # Beyond 8192 every float32 is a multiple of 2^-10: what is left of 2π · 1400 uses all its bits.
        ("c = Constant <value = float[1] {8796.4594}>() y = Mul(x, c)", True),
    ],
)
def test_numbers_that_float32_rounds_are_moved_and_others_are_meant(body, moves):
    moved = nudge_constants(widen(parsed(body), keep_lossy_casts=True), set(), 1)
    assert (moved is not None) == moves
