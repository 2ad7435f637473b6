"""gemm_half_alpha: a product is scaled before it is rounded to float16: it overflows before it is scaled.

Right in onnxruntime 1.28.0, wrong in 1.29.0, right again in 1.30.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.29.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
gemm_half_alpha (float16[1,2] a, float16[2,1] b, float16[1,1] c) => (float16[1,1] y)
{ y = Gemm<alpha=0.5>(a, b, c) }"""
INPUTS = {"a": np.array([[-400, -30]], "f2"), "b": np.array([[250], [160]], "f2"), "c": np.zeros((1, 1), "f2")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray([[-52416]])
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
