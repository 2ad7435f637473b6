"""onnxruntime: a reduction of something empty along a negative axis keeps its shape; along the same axis counted from the front it is right."""

import sys

import numpy as np
import onnxruntime
from onnx import helper


def reduce(axis: int, x: np.ndarray) -> np.ndarray:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    ports = [helper.make_tensor_value_info("x", 1, ["a", "b"]), helper.make_tensor_value_info("y", 1, ["c"])]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], [helper.make_tensor("axes", 7, [1], [axis])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


x, wrong = np.zeros((3, 0), np.float32), False
for axis in (1, -1):
    expected, got = x.sum(axis), reduce(axis, x)
    wrong |= expected.shape != got.shape
    print("axis", axis, "expected", expected.shape, "onnxruntime", got.shape)
sys.exit(wrong)
