"""reducemean_empty: with another dimension empty the last one is still reduced: it is kept.

Right in onnxruntime 1.16.3, wrong in 1.17.0.
The first release exits with 0, the second with 1; `pip install onnx "numpy<2" onnxruntime==1.17.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
reducemean_empty (float[4,n,5] x) => (float[4,n] y)
{ y = ReduceMean<axes=[-1], keepdims=0>(x) }"""
INPUTS = {"x": np.zeros((4, 0, 5), "f4")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray(np.zeros((4, 0)))
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
