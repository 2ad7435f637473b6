"""onnxruntime: ReduceProd of int64 multiplies in float64: it loses digits, and beyond the range it saturates where integers wrap."""

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("ReduceProd", ["x"], ["y"], keepdims=0)
ports = [helper.make_tensor_value_info("x", 7, [2]), helper.make_tensor_value_info("y", 7, [])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for x in (np.array([3, 2**55 + 1]), np.array([3, 2**62 + 1])):
    print("expected", x.prod(), "onnxruntime", session.run(None, {"x": x})[0])
