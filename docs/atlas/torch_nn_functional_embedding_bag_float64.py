"""torch.nn.functional.embedding_bag, float64, dynamo: -700106 where PyTorch gives -700106, on 0 and 0.1 (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0, x1, x2, x3):
        return torch.nn.functional.embedding_bag(x0, x1, offsets=x2, mode='sum', per_sample_weights=x3)


inputs = (torch.tensor([[0.1, -0.3, 1.0, -2.5, 10.0], [-10.0, 30.0, -40.0, 88.5, -88.5], [95.0, 300.0, -700.0, 1000.0, 0.1], [-0.3, 1.0, -2.5, 10.0, -10.0], [30.0, -40.0, 88.5, -88.5, 95.0], [300.0, -700.0, 1000.0, 0.1, -0.3], [1.0, -2.5, 10.0, -10.0, 30.0], [-40.0, 88.5, -88.5, 95.0, 300.0], [-700.0, 1000.0, 0.1, -0.3, 1.0], [-2.5, 10.0, -10.0, 30.0, -40.0]], dtype=torch.float64),
    torch.tensor([5, 1, 6, 5, 6], dtype=torch.int64),
    torch.tensor([0, 3], dtype=torch.int64),
    torch.tensor([-88.5, 95.0, 300.0, -700.0, 1000.0], dtype=torch.float64),)
expected = Model()(*inputs)
file = torch.onnx.export(Model(), inputs, dynamo=True, opset_version=None, verbose=False).model_proto.SerializeToString()
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
