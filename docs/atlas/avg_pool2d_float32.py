"""aten.avg_pool2d.default, float32, dynamo: -3.8411 where PyTorch gives 7.6822, on sample values (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.nn.functional.avg_pool2d(x0, (2, 2), (), (0,), False, True, -2)


inputs = (torch.tensor([[[[-8.478373527526855, -1.765825867652893, -4.3228044509887695, -2.400455951690674], [-7.950586795806885, 3.611605167388916, -8.067646980285645, -0.5734938383102417], [3.1285104751586914, -3.033684730529785, 5.106744766235352, 1.135137677192688], [4.947308540344238, 5.774446487426758, -3.973021984100342, 3.270799398422241]]]], dtype=torch.float32),)
expected = Model()(*inputs)
file = torch.onnx.export(Model(), inputs, dynamo=True, opset_version=None, verbose=False).model_proto.SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
got = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
expected = [one.numpy() for one in (expected if isinstance(expected, (tuple, list)) else [expected])]
for one, other in zip(expected, got):
    finite = np.abs(one[np.isfinite(one)]).max(initial=0) if one.dtype.kind == "f" else 0
    if one.shape != other.shape or one.dtype != other.dtype or not np.allclose(one, other, 1e-5, 1e-5 * 0.1 * finite, equal_nan=True):
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
