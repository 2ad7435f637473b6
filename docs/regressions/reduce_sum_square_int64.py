"""reduce_sum_square_int64: integers are added exactly: they are added as doubles.

Right in onnxruntime 1.26.0, wrong in 1.27.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.27.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
reduce_sum_square_int64 (int64[2] x) => (int64 y)
{ y = ReduceSumSquare<keepdims=0>(x) }"""
INPUTS = {"x": np.array([3**17, 1])}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray(3**34 + 1)
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
