"""Operators that move values, choose among them or run along a sequence: the evaluator gives what onnxruntime gives, whatever the axis."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnxproof.graph.operators import FAST_OPS

GENERATOR = np.random.default_rng(0)


def floats(*shape):
    return GENERATOR.normal(size=shape).astype(np.float32)


def places(*shape, low=-3, high=3):
    return GENERATOR.integers(low, high, shape)


def whole(*numbers):
    return np.array(numbers, np.int64)


def along_axes():
    x = floats(3, 4, 5)
    for axis in range(-3, 3):
        given = {"axis": axis}
        yield "Gather", [x, places(2, 2)], given
        yield "Gather", [x, np.array(1)], given
        for shape in ((3, 4, 5), (2, 3, 4), (1, 1, 1), (3, 4, 0)):
            yield "GatherElements", [x, places(*shape)], given
            yield "ScatterElements", [x, places(*shape), floats(*shape)], {**given, "reduction": "add"}
        yield "Softmax", [x], given
        yield "ArgMin", [x], {**given, "keepdims": 0}
        yield "Compress", [x, np.array([True, False, True])], given
        yield "CumSum", [x, np.array(axis, np.int32)], {"exclusive": 1, "reverse": 1}
        yield "Slice", [x, whole(-1), whole(-100), whole(axis), whole(-2)], {}
        yield "OneHot", [places(2, 3), np.array(3), np.array([0, 1], np.float32)], given
        yield "Pad", [x, whole(2, -1), None, whole(axis)], {"mode": "edge"}


def along_sequences():
    for direction in ("forward", "reverse", "bidirectional"):
        many, given = 1 + (direction == "bidirectional"), {"hidden_size": 5, "direction": direction}
        for lengths in (np.array([2, 4], np.int32), np.array([4, 4], np.int32), None):
            for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
                weights = floats(many, 5 * gates, 3), floats(many, 5 * gates, 5), floats(many, 10 * gates)
                states = [floats(many, 2, 5)] * (2 if op == "LSTM" else 1)
                yield op, [floats(4, 2, 3), *weights, lengths, *states], given


def others():
    x = floats(3, 4)
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield "Pad", [x, whole(0, 1, 2, 3)], {"mode": mode}
    yield "Pad", [x, whole(-1, 0, 1, -2), np.array(3, np.float32)], {}
    for batch in (0, 1):
        yield "GatherND", [floats(2, 3, 4), places(2, 2, 1, low=-2, high=2)], {"batch_dims": batch}
    yield "ScatterND", [floats(4, 5), whole([0, -1], [-2, 2]), floats(2)], {"reduction": "max"}
    for k in (-2, 0, 7):
        yield "Trilu", [x, np.array(k)], {"upper": 0}
    yield "Tile", [x, whole(2, 0)], {}
    yield "Einsum", [floats(2, 3, 4), floats(2, 5, 4)], {"equation": "bij,bkj->bik"}


@pytest.mark.parametrize(("op", "inputs", "given"), [*along_axes(), *along_sequences(), *others()])
def test_it_gives_what_the_runtime_gives(op, inputs, given):
    names = ["" if one is None else f"i{place}" for place, one in enumerate(inputs)]
    feed = {name: one for name, one in zip(names, inputs, strict=True) if one is not None}
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feed.items()
    ]
    results = {"LSTM": ["y", "h", "c"], "GRU": ["y", "h"], "RNN": ["y", "h"]}.get(op, ["y"])
    made = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([helper.make_node(op, names, results, **given)], "g", ends, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, feed
    )
    came = ReferenceEvaluator(model, new_ops=FAST_OPS).run(None, feed)
    for one, other in zip(came, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
