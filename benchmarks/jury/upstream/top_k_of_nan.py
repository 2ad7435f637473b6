"""onnxruntime: TopK (so `sort` and `topk`) puts NaN anywhere, depending on the place where it stands; PyTorch and numpy rank it above all numbers."""

import sys

import numpy as np
import onnxruntime
import torch
from onnx import helper

node = helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=-1, largest=1)
ports = [
    helper.make_tensor_value_info("x", 1, [3, 4]),
    helper.make_tensor_value_info("y", 1, [3, 2]),
    helper.make_tensor_value_info("places", 7, [3, 2]),
]
graph = helper.make_graph([node], "g", ports[:1], ports[1:], [helper.make_tensor("k", 7, [1], [2])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
nan = np.nan
x = np.array([[nan, 1, 2, 3], [1, nan, 2, 3], [1, 2, 3, nan]], np.float32)
expected, got = torch.from_numpy(x).topk(2).values.numpy(), session.run(None, {"x": x})[0]
print("expected", expected.tolist(), "onnxruntime", got.tolist())
sys.exit(not np.array_equal(expected, got, equal_nan=True))
