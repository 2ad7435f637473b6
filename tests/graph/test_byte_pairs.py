"""Which nodes a CPU without VNNI computes otherwise, and what it answers: as onnxruntime did on an emulated one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxproof.graph.byte_pairs import BytePairs, sum_excess
from onnxproof.graph.evaluator import Evaluator

RANDOM = np.random.default_rng(0)


def saturate(x, w):
    """Two neighbours at a time, by the letter."""
    x, w = np.atleast_2d(x).astype(int), w.astype(int)
    total = np.zeros((len(x), w.shape[1]), int)
    for k in range(0, x.shape[1], 2):
        total += np.clip(sum(np.outer(x[:, i], w[i]) for i in range(k, min(k + 2, x.shape[1]))), -(2**15), 2**15 - 1)
    return total


@pytest.mark.parametrize("length", [1, 2, 7, 64])
def test_what_saturation_adds(length):
    x, w = RANDOM.integers(150, 256, (3, length)), RANDOM.integers(-128, 128, (length, 5))
    excess, count = sum_excess(x, w)
    assert np.array_equal(x @ w + excess, saturate(x, w))
    assert (count > 0) == (length > 1)


def test_an_empty_batch_adds_nothing():
    excess, count = sum_excess(np.zeros((0, 4), int), np.ones((4, 3), int))
    assert (excess.shape, count) == ((0, 3), 0)


def make(nodes, x, stored, **types):
    graph = helper.make_graph(
        nodes,
        "bytes",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", types.get("y", TensorProto.FLOAT), None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def answer(model: onnx.ModelProto, x, *, fused=True):
    """What the file says, and what such a CPU makes of it; both as float64."""
    evaluator = Evaluator.exact(model, keep_lossy_casts=True)
    pairs = BytePairs(evaluator.steps, evaluator.stored, fused=fused)
    feed = {"x": x.astype(np.float64) if x.dtype.kind == "f" else x}
    return evaluator.run(feed)["y"], evaluator.run(feed, pairs.look)["y"], pairs.found


X, W = RANDOM.integers(200, 256, (5, 9)), RANDOM.integers(90, 128, (9, 4)).astype(np.int8)
QUANTISED = {
    "s": np.float32(1),
    "w": W,
    "zw": np.int8(0),
    "zx": np.uint8(128),
    "sy": np.float32(1e3),
    "zy": np.uint8(0),
}


def integers(dtype):
    shift = 128 if dtype == np.int8 else 0
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"], name="product")
    x = (X - shift).astype(dtype)
    return make([node], x, {"w": W}, y=TensorProto.INT32), x


def test_a_product_of_integers_saturates_and_is_counted():
    exact, there, found = answer(*integers(np.uint8))
    assert np.array_equal(exact, X @ W.astype(int))
    assert np.array_equal(there, saturate(X, W))
    assert found["product"].pairs > 0
    assert found["product"].of == 5 * 4 * 5


def test_signed_activations_of_an_operator_do_not():
    exact, there, found = answer(*integers(np.int8))
    assert np.array_equal(exact, there)
    assert not found


def dequantised(op, x, zero, *, behind=(), quantised=True, **attributes):
    stored = {**QUANTISED, "zx": zero, "w": W if x.ndim == 2 else KERNEL}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "s", "zw"], ["wd"]),
        helper.make_node(op, ["xd", "wd"], ["made"], name="product", **attributes),
        *(helper.make_node(one, ["made"], ["active"]) for one in behind),
    ]
    last = "active" if behind else "made"
    ends = [("QuantizeLinear", [last, "sy", "zy"], ["q"]), ("DequantizeLinear", ["q", "sy", "zy"], ["y"])]
    ends = ends if quantised else [("Identity", [last], ["y"])]
    return make([*nodes, *(helper.make_node(*one) for one in ends)], x, stored), x


@pytest.mark.parametrize("zero", [np.uint8(128), np.int8(0)])
def test_a_product_between_dequantising_and_quantising_saturates_where_it_is_fused(zero):
    model, x = dequantised("MatMul", (X - 128).astype(np.float32), zero, quantised=False)
    exact, there, found = answer(model, x)
    offsets = 128 * W.astype(int).sum(axis=0)
    assert np.array_equal(exact, X @ W.astype(int) - offsets)
    assert np.array_equal(there, saturate(X, W) - offsets)
    assert not answer(model, x, fused=False)[2]
    assert found


IMAGE, KERNEL = RANDOM.integers(200, 256, (1, 6, 4, 4)), RANDOM.integers(90, 128, (4, 3, 3, 3)).astype(np.int8)


def convolve(image, kernel, zero):
    """Patches with the channels last, in two groups, padded with the zero point."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=zero)
    result = np.zeros((1, 4, 4, 4), int)
    for channel, i, j in np.ndindex(4, 4, 4):
        first = 3 * (channel // 2)
        patch = padded[0, first : first + 3, i : i + 3, j : j + 3].transpose(1, 2, 0).ravel()
        weights = kernel[channel].transpose(1, 2, 0).ravel()[:, None]
        result[0, channel, i, j] = saturate(patch, weights)[0, 0] - zero * weights.astype(int).sum()
    return result


@pytest.mark.parametrize("behind", [(), ("Relu",)])
def test_a_convolution_saturates_channels_last(behind):
    x = (IMAGE - 128).astype(np.float32)
    model, x = dequantised("Conv", x, np.uint8(128), behind=behind, group=2, pads=[1, 1, 1, 1])
    _, there, found = answer(model, x)
    assert np.array_equal(there, 1e3 * np.clip(np.rint(convolve(IMAGE, KERNEL, 128) / 1e3), 0, 255))
    assert found["product"].pairs > 0


def test_a_convolution_that_is_not_quantised_again_is_computed_in_floats():
    x = (IMAGE - 128).astype(np.float32)
    assert not answer(*dequantised("Conv", x, np.uint8(128), quantised=False, group=2))[2]


@pytest.mark.parametrize(
    ("op", "kernel", "group"),
    [("ConvInteger", KERNEL, 2), ("QLinearConv", RANDOM.integers(90, 128, (6, 1, 3, 3)).astype(np.int8), 6)],
)
def test_kernels_that_do_not_saturate(op, kernel, group):
    named = ["x", "w"] if op == "ConvInteger" else ["x", "s", "zx", "w", "s", "zw", "sy", "zy"]
    node = helper.make_node(op, named, ["y"], group=group)
    stored = {**QUANTISED, "w": kernel}
    model = make(
        [node], IMAGE.astype(np.uint8), stored, y=TensorProto.INT32 if op == "ConvInteger" else TensorProto.UINT8
    )
    assert not answer(model, IMAGE.astype(np.uint8))[2]


def test_weights_of_seven_bits_never_do():
    model, x = dequantised("MatMul", (X - 128).astype(np.float32), np.uint8(128), quantised=False)
    (weight,) = (tensor for tensor in model.graph.initializer if tensor.name == "w")
    weight.CopyFrom(numpy_helper.from_array(np.clip(W, -64, 64), "w"))
    assert not answer(model, np.full_like(x, 127))[2]
