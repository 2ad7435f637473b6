"""onnxruntime: MatMulScaleFusion takes away a scaling that something else needs: no session can be built ("Node input 'd' is not …").

The scaling d = x / 8 feeds a second scaling before one MatMul, and another MatMul by itself.
"""

import sys

import onnx
import onnxruntime
from onnx import helper

nodes = [
    helper.make_node("Div", ["x", "a"], ["d"]),
    helper.make_node("Mul", ["d", "b"], ["q"]),
    helper.make_node("MatMul", ["q", "x"], ["s"]),
    helper.make_node("MatMul", ["s", "d"], ["y"]),
]
ports = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in "xy"]
numbers = [helper.make_tensor("a", 1, [], [8.0]), helper.make_tensor("b", 1, [], [0.5])]
graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], numbers)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.checker.check_model(model, full_check=True)
data, how = model.SerializeToString(), {"providers": ["CPUExecutionProvider"]}
onnxruntime.InferenceSession(data, disabled_optimizers=["MatMulScaleFusion"], **how)
print("valid, and a session without MatMulScaleFusion is built; with it:")
try:
    onnxruntime.InferenceSession(data, **how)
    print("built")
except Exception as error:
    print(error)
    sys.exit(1)
