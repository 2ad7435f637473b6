"""onnxruntime: Einsum of an empty batch divides by zero, and the process dies (SIGFPE); numpy and PyTorch give an empty result."""

import subprocess
import sys

PROGRAM = """
import numpy as np
import onnxruntime
from onnx import helper

node = helper.make_node("Einsum", ["x", "x"], ["y"], equation="bsi,bti->bst")
ports = [helper.make_tensor_value_info("x", 1, ["b", 5, 3]), helper.make_tensor_value_info("y", 1, ["b", 5, 5])]
graph = helper.make_graph([node], "g", ports[:1], ports[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print(session.run(None, {"x": np.zeros((0, 5, 3), np.float32)})[0].shape)
"""
ended = subprocess.run([sys.executable, "-c", PROGRAM], check=False).returncode
print("expected", 0, "got", ended)
sys.exit(ended != 0)
