"""aten.upsample_bilinear2d.default, uint8, torchscript: 5 where PyTorch gives 6, on sample values (torch 2.13.0, onnxruntime 1.31.1)."""

import sys
from io import BytesIO

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.nn.functional.interpolate(x0, (3, 3), scale_factor=None, mode='bilinear', align_corners=True)


inputs = (torch.tensor([[[[5, 1, 6, 5], [6, 4, 2, 5], [5, 9, 3, 1], [4, 2, 3, 2]], [[6, 8, 2, 2], [8, 2, 0, 4], [9, 2, 1, 9], [2, 2, 9, 4]], [[4, 7, 2, 5], [8, 6, 6, 7], [1, 5, 2, 1], [7, 4, 3, 0]]], [[[7, 6, 9, 3], [3, 9, 0, 1], [2, 9, 7, 8], [6, 3, 4, 8]], [[5, 1, 5, 6], [4, 2, 9, 3], [5, 9, 7, 9], [9, 4, 9, 8]], [[7, 4, 5, 2], [8, 8, 8, 8], [4, 4, 2, 3], [9, 1, 2, 7]]]], dtype=torch.uint8),)
expected = Model()(*inputs)
file = BytesIO()
torch.onnx.export(Model(), inputs, file, dynamo=False, opset_version=None)
session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
got = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
expected = [one.numpy() for one in (expected if isinstance(expected, (tuple, list)) else [expected])]
for one, other in zip(expected, got):
    same = one.dtype == other.dtype and np.array_equal(one, other)
    if one.dtype.kind == "f" and one.shape == other.shape:
        finite = np.abs(one[np.isfinite(one)]).max(initial=0)
        same = one.dtype == other.dtype and np.allclose(one, other, 1e-5, 1e-5 * 0.1 * finite, equal_nan=True)
    if not same:
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
