"""onnx and onnxruntime: shape inference of MaxPool and AveragePool with ceil_mode below opset 22 counts a window that starts in the padding.

The kernel leaves it away, as PyTorch does. What follows with the right shape is a contradiction, and no session can be built.
"""

import sys

import numpy as np
import onnxruntime
from onnx import helper


def build(opset: int) -> bytes:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1], strides=[2], ceil_mode=1),
        helper.make_node("Mul", ["p", "six"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info("x", 1, [1, 1, 12]), helper.make_tensor_value_info("y", 1, [1, 1, 6])]
    six = [helper.make_tensor("six", 1, [6], np.arange(6.0))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], six)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


wrong, x = False, np.ones((1, 1, 12), np.float32)
for opset in (22, 20):
    try:
        session = onnxruntime.InferenceSession(build(opset), providers=["CPUExecutionProvider"])
        print("opset", opset, session.run(None, {"x": x})[0].shape)
    except Exception as error:
        wrong = True
        print("opset", opset, error)
sys.exit(wrong)
