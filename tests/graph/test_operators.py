"""The faster operators answer what the reference ones do, also where they hand over to them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from benchmarks import evaluator as digits
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnxproof.graph.operators import FAITHFUL_OPS, FAST_OPS
from onnxproof.graph.weights import NONE

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(2, 4, 9, 9))
W = GENERATOR.normal(size=(6, 2, 3, 3))
UP = GENERATOR.normal(size=(4, 3, 3, 3))
BIAS = GENERATOR.normal(size=6)
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}


def model(op, *inputs, **attributes):
    names = [f"i{place}" for place in range(len(inputs))]
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in inputs]
    ends = [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, inputs, strict=True)]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", ends, [helper.make_tensor_value_info("y", kinds[0], None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), dict(zip(names, inputs, strict=True))


def both(op, *inputs, **attributes):
    made, feed = model(op, *inputs, **attributes)
    return [ReferenceEvaluator(made, new_ops=ops).run(None, feed)[0] for ops in (FAST_OPS, None)]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Conv", (X, W, BIAS), {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
        ("Conv", (X, W), {"group": 2, "auto_pad": "SAME_UPPER"}),
        ("Conv", (X[..., 0], UP[:, :, 0].repeat(2, 1)[:, :4]), {}),
        ("MaxPool", (X,), {**POOL, "pads": [1, 1, 1, 1]}),
        ("MaxPool", (X,), {**POOL, "ceil_mode": 1}),
        ("MaxPool", (X,), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
        ("AveragePool", (X,), {**POOL, "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("AveragePool", (X,), {**POOL, "pads": [1, 1, 1, 1]}),
        ("AveragePool", (X,), {**POOL, "ceil_mode": 1}),
        ("ConvTranspose", (X, UP), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("ConvTranspose", (X, UP), {"strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ],
)
def test_the_same_numbers(op, inputs, attributes):
    fast, slow = both(op, *inputs, **attributes)
    assert fast.shape == slow.shape
    assert fast.dtype == np.float64
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("how", [(3, 1, 1, 1), (2, 2, 1, 1), (1, 2, 0, 1), (2, 1, 0, 2)], ids=str)
@pytest.mark.parametrize("rounded_up", [False, True])
def test_maxima_and_their_places_are_torchs(rank, how, rounded_up):
    """The reference one gives other places, and other sizes where they are rounded up."""
    kernel, stride, pad, dilation = how
    x = torch.randn(2, 3, *(9, 8)[:rank], dtype=torch.float64)
    pool = getattr(torch.nn.functional, f"max_pool{rank}d")
    values, places = pool(x, kernel, stride, pad, dilation, rounded_up, return_indices=True)
    attributes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "dilations": [dilation] * rank}
    made, feed = model("MaxPool", x.numpy(), **attributes, pads=[pad] * 2 * rank, ceil_mode=int(rounded_up))
    made.graph.node[0].output.append("places")
    made.graph.output.append(helper.make_tensor_value_info("places", 7, None))
    found, at = ReferenceEvaluator(made, new_ops=FAST_OPS).run(None, feed)
    np.testing.assert_array_equal(found, values.numpy())
    # ONNX counts through the whole tensor, torch through one channel.
    first = np.arange(6).reshape(2, 3, *[1] * rank) * x[0, 0].numel()
    np.testing.assert_array_equal(at - first, places.numpy())


@pytest.mark.parametrize(
    ("how", "rounded_up"),
    [*itertools.product([(2, 2, 1), (3, 2, 0), (7, 3, 1)], [False, True]), ((20, 20, 0), True)],
    ids=str,
)
@pytest.mark.parametrize("counted", [False, True])
def test_averages_are_torchs_also_of_windows_beyond_the_end(how, rounded_up, counted):
    """The reference one divides by what a window would hold, where sizes are rounded up."""
    kernel, stride, pad = how
    x = torch.randn(1, 2, 8, 7, dtype=torch.float64)
    true = torch.nn.functional.avg_pool2d(x, kernel, stride, pad, rounded_up, counted)
    attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    made, feed = model(
        "AveragePool", x.numpy(), **attributes, ceil_mode=int(rounded_up), count_include_pad=int(counted)
    )
    [found] = ReferenceEvaluator(made, new_ops=FAST_OPS).run(None, feed)
    np.testing.assert_allclose(found, true.numpy(), rtol=1e-12)


def test_erf_and_gelu_keep_the_digits_of_float64():
    x = np.linspace(-2, 2, 9)
    erf, _ = both("Erf", x)
    gelu, _ = both("Gelu", x)
    np.testing.assert_allclose(gelu, x * (1 + both("Erf", x / np.sqrt(2))[0]) / 2, rtol=1e-14)
    assert erf[-1] == pytest.approx(0.9953222650189527, abs=1e-16)


@pytest.mark.parametrize("power", [2.0, 3.0, 0.5, [2.0], [[2.0, 3.0]], [[[[3.0]]]]])
def test_powers_are_those_of_the_reference(power):
    x = np.array([[-np.inf, -1.5], [0.0, np.nan], [1e200, 3.0]])
    fast, slow = both("Pow", x, np.array(power))
    assert fast.shape == slow.shape
    np.testing.assert_allclose(fast, slow, rtol=1e-15)


def test_a_maximum_keeps_nan_in_the_graphs_own_dtype():
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0] = np.nan
    made, feed = model("MaxPool", x, **POOL)
    assert np.isnan(ReferenceEvaluator(made, new_ops=FAITHFUL_OPS).run(None, feed)[0]).any()


@pytest.mark.parametrize("mode", ["linear", "bilinear", "cubic", "nearest"])
def test_a_grid_is_sampled_by_any_opsets_names(mode):
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9)), -1)[None].repeat(2, 0)
    made, feed = model("GridSample", X, grid, mode=mode, align_corners=1)
    sampled = ReferenceEvaluator(made, new_ops=FAST_OPS).run(None, feed)[0]
    np.testing.assert_allclose(sampled, X, atol=1e-12)


def test_log_softmax_is_right_far_from_the_largest():
    x = np.array([[0.0, -800.0, 3.0], [1e4, 0.0, -1e4]])
    made, _ = both("LogSoftmax", x, axis=1)
    np.testing.assert_allclose(made, [[-3.048587351573742, -803.0485873515737, -0.04858735157374206], [0, -1e4, -2e4]])


@pytest.mark.parametrize(
    "op", sorted({kind.__name__ for kind in FAST_OPS} & {case.op for case in digits.list_checks()})
)
def test_what_is_ours_is_right_to_the_last_digits_at_every_opset(op):
    """Against arithmetic of sixty digits; `make evaluator` holds every operator against it."""
    errors = [error for case in digits.list_checks() if case.op == op for _, error in digits.check(case)]
    assert errors
    assert max(errors) < digits.LIMIT


def test_the_digits_see_what_the_reference_gets_wrong(monkeypatch):
    """Near miss of the above: with the reference's own operators these fail."""
    monkeypatch.setattr(digits.Evaluator, "__init__", _without_ours(digits.Evaluator.__init__))
    for op in ("BatchNormalization", "GlobalMaxPool", "LpNormalization", "Resize"):
        errors = [error for case in digits.list_checks() if case.op == op for _, error in digits.check(case)]
        assert max(errors) > digits.LIMIT, op


def _without_ours(make):
    return lambda self, model, operators=(), weights=None: make(self, model, (), weights or NONE)


@pytest.mark.parametrize(
    ("scale", "axis", "block", "expected"),
    [
        ([2], 1, 0, [[2] * 5] * 2),
        ([2, 3], 0, 0, [[2] * 5, [3] * 5]),
        ([1, 2, 3, 4, 5], -1, 0, [[1, 2, 3, 4, 5]] * 2),
        ([[1, 2, 3], [4, 5, 6]], 1, 2, [[1, 1, 2, 2, 3], [4, 4, 5, 5, 6]]),
        ([[1, 2, 3, 4, 5]], 0, 2, [[1, 2, 3, 4, 5]] * 2),
    ],
)
def test_a_scale_is_one_or_one_for_each_place_or_block(scale, axis, block, expected):
    """Of our own: the reference's own helper has another name in each release."""
    feed = np.ones((2, 5), np.int8), np.array(scale, np.float32), np.zeros_like(scale, np.int8)
    made, inputs = model("DequantizeLinear", *feed, axis=axis, block_size=block)
    made.opset_import[0].version = 21
    (out,) = ReferenceEvaluator(made, new_ops=FAST_OPS).run(None, inputs)
    assert out.tolist() == expected
