"""onnxruntime: Sign of int64 calls the numbers from 2 ** 31 to 2 ** 32 - 1 negative."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("Sign", ["x"], ["y"])
ports = [helper.make_tensor_value_info(name, 7, [4]) for name in "xy"]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([5, 2**31, 2**32 - 1, 2**32])
print("expected", np.sign(x), "onnxruntime", session.run(None, {"x": x})[0])
