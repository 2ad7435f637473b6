"""onnxruntime: Pad_Fusion makes padding of MaxPool of a Pad with zeros: MaxPool pads with −inf, so that negative maxima come out where 0 is right.

Where the Pad is as wide as the window (pads of 2, kernel 2) no session can be built at all.
"""

import sys

import numpy as np
import onnxruntime
from onnx import helper


def build(width: int) -> bytes:
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"]),
        helper.make_node("MaxPool", ["p"], ["y"], kernel_shape=[2], strides=[1]),
    ]
    ports = [helper.make_tensor_value_info("x", 1, [1, 1, 4]), helper.make_tensor_value_info("y", 1, [1, 1, 3 + width])]
    pads = [helper.make_tensor("pads", 7, [6], [0, 0, width, 0, 0, 0])]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], pads)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


how, x, wrong = {"providers": ["CPUExecutionProvider"]}, -np.ones((1, 1, 4), np.float32), False
for width in (1, 2):
    right = onnxruntime.InferenceSession(build(width), disabled_optimizers=["Pad_Fusion"], **how).run(None, {"x": x})[0]
    try:
        got = onnxruntime.InferenceSession(build(width), **how).run(None, {"x": x})[0]
        wrong |= bool((got != right).any())
        print("expected", right.ravel(), "onnxruntime", got.ravel())
    except Exception as error:
        wrong = True
        print("expected", right.ravel(), "onnxruntime", str(error)[-160:])
sys.exit(wrong)
