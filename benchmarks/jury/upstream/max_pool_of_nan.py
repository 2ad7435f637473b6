"""onnxruntime: MaxPool passes over NaN, which PyTorch hands on, and answers −3.4e38 for a window that holds nothing else."""

import sys

import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])
ports = [helper.make_tensor_value_info("x", 1, [1, 1, 4]), helper.make_tensor_value_info("y", 1, [1, 1, 2])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([[[1, np.nan, np.nan, np.nan]]], np.float32)
expected, got = x.reshape(2, 2).max(1), session.run(None, {"x": x})[0].ravel()
print("expected", expected, "onnxruntime", got)
sys.exit(not np.isnan(got).all())
