"""Quantised operators, written out: the same answers as onnxruntime's kernels give, but for a step where a table is looked up."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.expansion import INTEGERS, WRITERS, expand

CONTRIB = "com.microsoft"
GENERATOR = np.random.default_rng(0)
SCALE, ZERO = np.float32(0.05), np.uint8(117)


def stored(shape, dtype=np.uint8):
    ends = np.iinfo(dtype)
    return GENERATOR.integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def model(op, inputs, fed, domain=CONTRIB, **attributes):
    """One node; the inputs named in `fed` are the graph's, the others are stored."""
    names = [f"i{place}" for place in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    kinds = {name: helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for name, v in zip(names, inputs, strict=True)}
    given = [helper.make_tensor_value_info(names[i], kinds[names[i]], np.shape(inputs[i])) for i in fed]
    kept = [numpy_helper.from_array(np.asarray(v), names[i]) for i, v in enumerate(inputs) if i not in fed]
    output = helper.make_tensor_value_info("y", TensorProto.UINT8 if op != "MatMulNBits" else TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", given, [output], kept)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return made, {names[i]: inputs[i] for i in fed}


def both(made, feed):
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in feed.items()}
    return session.run(None, feed)[0], Evaluator.exact(made, keep_lossy_casts=True).run(wide)["y"]


A, B = (stored((6, 8)), SCALE, ZERO), (stored((6, 8)), np.float32(0.03), np.uint8(140))
WEIGHT = (stored((8, 5), np.int8) // 2, np.float32(0.02), np.int8(0))
KERNEL = (stored((4, 3, 3, 3), np.int8) // 2, np.full(4, 0.01, "f4"), np.zeros(4, np.int8))
IMAGE = (stored((2, 3, 6, 6)), SCALE, ZERO)
OUT = (np.float32(0.4), np.uint8(128))
CASES = {
    "QLinearAdd": ([*A, *B, *OUT], (0, 3), CONTRIB, {}),
    "QLinearMul": ([*A, *B, *OUT], (0, 3), CONTRIB, {}),
    "QLinearMatMul": ([*A, *WEIGHT, *OUT], (0,), "", {}),
    "QLinearSigmoid": ([*A, np.float32(1 / 256), np.uint8(0)], (0,), CONTRIB, {}),
    "QLinearLeakyRelu": ([*A, *OUT], (0,), CONTRIB, {"alpha": 0.1}),
    "QLinearSoftmax": ([*A, np.float32(1 / 256), np.uint8(0)], (0,), CONTRIB, {"axis": -1, "opset": 13}),
    "QLinearAveragePool": ([*IMAGE, *OUT], (0,), CONTRIB, {"kernel_shape": [3, 3]}),
    "QLinearGlobalAveragePool": ([*IMAGE, *OUT], (0,), CONTRIB, {}),
    "QLinearConcat": ([*OUT, *A, *B], (2, 5), CONTRIB, {"axis": 1}),
    "QLinearConv": ([*IMAGE, *KERNEL, *OUT, stored(4, np.int8).astype(np.int32)], (0,), "", {"pads": [1, 1, 1, 1]}),
    "QGemm": ([*A, *WEIGHT, stored(5, np.int8).astype(np.int32), *OUT], (0,), CONTRIB, {}),
}


@pytest.mark.parametrize("op", CASES)
def test_it_answers_as_the_kernel(op):
    inputs, fed, domain, attributes = CASES[op]
    made, feed = model(op, inputs, fed, domain, **attributes)
    kernel, exact = both(made, feed)
    assert exact.dtype == np.uint8
    steps = np.abs(kernel.astype(int) - exact.astype(int))
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.2


def test_every_writer_is_tried():
    untried = {*WRITERS} - {*CASES} - {*INTEGERS}
    assert untried == {"MatMulNBits", "QLinearReduceMean"}  # the latter has no kernel here


WHOLE = {
    "MatMulInteger": ([stored((6, 8)), stored((8, 5), np.int8) // 2, ZERO, np.int8([1, -2, 0, 3, 1])], {}),
    "ConvInteger": ([stored((2, 3, 6, 6)), KERNEL[0], ZERO, np.int8(2)], {"pads": [1, 1, 1, 1]}),
}


@pytest.mark.parametrize("op", WHOLE)
def test_products_of_integers_are_those_of_the_kernel(op):
    inputs, attributes = WHOLE[op]
    made, feed = model(op, inputs, (0,), "", **attributes)
    made.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    kernel, exact = both(made, feed)
    np.testing.assert_array_equal(kernel, exact)


@pytest.mark.parametrize("zeros", [None, stored((5, 1))])
@pytest.mark.parametrize("bias", [None, np.float32([1, 2, 3, 4, 5])])
def test_weights_of_four_bits(zeros, bias):
    rows, columns, block = 5, 32, 16
    packed, scales = stored((rows, columns // block, block // 2)), np.float32(np.linspace(0.1, 0.5, rows * 2))
    inputs = [np.float32(GENERATOR.standard_normal((3, columns))), packed, scales]
    if zeros is not None or bias is not None:
        inputs.append(np.full(rows, 0x88, np.uint8) if zeros is None else zeros.reshape(-1))
    made, feed = model("MatMulNBits", inputs, (0,), N=rows, K=columns, bits=4, block_size=block)
    if bias is not None:
        made.graph.initializer.append(numpy_helper.from_array(bias, "bias"))
        made.graph.node[0].input.extend(["", "bias"])
    kernel, exact = both(made, feed)
    np.testing.assert_allclose(kernel, exact, rtol=1e-5, atol=1e-5)


def test_a_model_without_them_is_left_alone():
    made = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    )
    assert expand(made) is made
