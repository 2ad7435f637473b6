"""grid_sample_nearest_far: a coordinate far outside has no pixel, so zero: it has one.

Right in onnxruntime 1.25.1, wrong in 1.26.0.
The first release exits with 0, the second with 1; `pip install onnx onnxruntime==1.26.0` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """<ir_version: 8, opset_import: ["": 17]>
grid_sample_nearest_far (float[1,1,2,2] x, float[1,1,1,2] grid) => (float[1,1,1,1] y)
{ y = GridSample<mode="nearest", padding_mode="zeros", align_corners=1>(x, grid) }"""
INPUTS = {"x": np.array([[[[1, 2], [3, 4]]]], "f4"), "grid": np.array([[[[3e38, -1]]]], "f4")}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray([[[[0]]]])
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
