"""aten.hardswish.default, float64, dynamo: 2.97572 where PyTorch gives 2.97572, on 2.98378 (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.nn.functional.hardswish(x0)


inputs = (torch.tensor([2.9837848689849524], dtype=torch.float64),)
expected = Model()(*inputs)
file = torch.onnx.export(Model(), inputs, dynamo=True, opset_version=18, verbose=False).model_proto.SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
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
