"""onnxruntime: ReduceSum of int64 adds in float64, and loses what lies below its 53 bits."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
ports = [helper.make_tensor_value_info("x", 7, [3]), helper.make_tensor_value_info("y", 7, [])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([2**60, 1, 1])
print("expected", x.sum(), "onnxruntime", session.run(None, {"x": x})[0])
