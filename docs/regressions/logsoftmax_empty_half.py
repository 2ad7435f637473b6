"""logsoftmax_empty_half: an empty float16 tensor gives an empty one: it raises.

Right in onnxruntime 1.16.3, wrong in 1.17.0, right again in 1.21.0.
The first release exits with 0, the second with 1; `pip install onnx "numpy<2" onnxruntime==1.17.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
logsoftmax_empty_half (float16[3,n,5] x) => (float16[3,n,5] y)
{ y = LogSoftmax<axis=1>(x) }"""
INPUTS = {"x": np.zeros((3, 0, 5), "f2")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray(np.zeros((3, 0, 5)))
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
