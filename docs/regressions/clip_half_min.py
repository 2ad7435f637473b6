"""clip_half_min: without an upper end nothing is clipped there: positive numbers become zero.

Right in onnxruntime 1.18.1, wrong in 1.19.0, right again in 1.20.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.19.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
clip_half_min (float16[2] x, float16 low) => (float16[2] y)
{ y = Clip(x, low) }"""
INPUTS = {"x": np.array([-2, 3], "f2"), "low": np.array(-1, "f2")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray([-1, 3])
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
