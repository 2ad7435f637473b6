"""onnxruntime: Mod with fmod=1 of int64 is computed in float64."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("Mod", ["x", "m"], ["y"], fmod=1)
ports = [helper.make_tensor_value_info(name, 7, [2]) for name in "xmy"]
graph = helper.make_graph([node], "g", ports[:2], ports[2:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x, m = np.array([2**62 + 1, -(2**62) - 1]), np.array([5, 5])
print("expected", np.fmod(x, m), "onnxruntime", session.run(None, {"x": x, "m": m})[0])
