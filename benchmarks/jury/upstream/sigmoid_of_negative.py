"""onnxruntime: Sigmoid keeps no digit of small results: 17 % too large at -15, 0 below about -18, so that its logarithm is infinite there."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("Sigmoid", ["x"], ["y"])
ports = [helper.make_tensor_value_info(name, 1, [4]) for name in "xy"]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([-10, -15, -18, -20], np.float32)
print("expected", 1 / (1 + np.exp(-x.astype(np.float64))), "onnxruntime", session.run(None, {"x": x})[0])
