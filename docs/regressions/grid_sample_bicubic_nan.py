"""grid_sample_bicubic_nan: a coordinate that is NaN gives NaN: it gives a number.

Right in onnxruntime 1.25.1, wrong in 1.26.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.26.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
grid_sample_bicubic_nan (float[1,1,2,2] x, float[1,1,1,2] grid) => (float[1,1,1,1] y)
{ y = GridSample<mode="bicubic", padding_mode="border">(x, grid) }"""
INPUTS = {"x": np.array([[[[1, 2], [3, 4]]]], "f4"), "grid": np.array([[[[np.nan, 0]]]], "f4")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray([[[[np.nan]]]])
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
