"""reduce_log_sum_exp_nan: a NaN stays one: it is lost beside an infinity.

Right in onnxruntime 1.26.0, wrong in 1.27.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.27.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
reduce_log_sum_exp_nan (float[3] x) => (float y)
{ y = ReduceLogSumExp<keepdims=0>(x) }"""
INPUTS = {"x": np.array([1, np.nan, np.inf], "f4")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray(np.nan)
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
