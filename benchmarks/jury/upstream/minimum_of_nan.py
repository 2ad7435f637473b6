"""onnxruntime: ReduceMin and ReduceMax pass over NaN, which numpy and PyTorch hand on."""

import sys

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("ReduceMin", ["x"], ["y"], keepdims=0)
ports = [helper.make_tensor_value_info("x", 1, [3]), helper.make_tensor_value_info("y", 1, [])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([0.7, np.nan, 0.6], np.float32)
[y] = session.run(None, {"x": x})
print("expected", x.min(), "onnxruntime", y)
sys.exit(int(not np.isnan(y)))
