"""onnxruntime: ArgMin and ArgMax pass over a NaN that is not the first along another axis than the last, where numpy and PyTorch name its place."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("ArgMin", ["x"], ["y"], axis=0, keepdims=0)
ports = [helper.make_tensor_value_info("x", 1, [3, 2]), helper.make_tensor_value_info("y", 7, [2])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([[3, 3], [np.nan, 2], [2, np.nan]], np.float32)
print("expected", x.argmin(0), "onnxruntime", session.run(None, {"x": x})[0])
