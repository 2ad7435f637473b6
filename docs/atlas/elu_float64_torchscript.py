"""aten.elu.default, float64, torchscript: -1.74402 where PyTorch gives -1.74402, on -4.82698 (torch 2.13.0, onnxruntime 1.31.1)."""

import sys
from io import BytesIO

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.nn.functional.selu(x0)


inputs = (torch.tensor([-4.826984902407649], dtype=torch.float64),)
expected = Model()(*inputs)
file = BytesIO()
torch.onnx.export(Model(), inputs, file, dynamo=False, opset_version=18)
session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
got = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
expected = [one.numpy() for one in (expected if isinstance(expected, (tuple, list)) else [expected])]
for one, other in zip(expected, got):
    same = one.dtype == other.dtype and np.array_equal(one, other)
    if one.dtype.kind == "f" and one.shape == other.shape:
        finite = np.abs(one[np.isfinite(one)]).max(initial=0)
        same = one.dtype == other.dtype and np.allclose(one, other, 1e-11, 1e-11 * 0.1 * finite, equal_nan=True)
    if not same:
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
