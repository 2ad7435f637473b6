"""torch.fft.hfftn, float64, dynamo: -103.614 where PyTorch gives -103.614, on sample values (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.fft.hfftn(x0)


inputs = (torch.tensor([-4.826984902407649, -7.582430495695129, -0.6046891126565539, -1.5411692216498662, -1.9719097652168658, -4.146041530864057, -5.4215280659972755, -4.784169829877467, -4.150805063878843, 7.380839390984031, 5.576059452216908, -8.315684908389088, 4.177597026003685, 2.047386382824099, -4.076012721760325, -3.063683029231029, -3.342174545322517, -5.439777184204883, 4.480518929058965, 2.685009210157367, -3.8432258180800494, -3.0355148286483775, -2.146076312776824, -2.6718482427688133, -7.7232222137058715, -8.596239972526284, -0.524154812497627, -3.2519978374491334, 6.846803848769272, -0.6113253421876204, 8.512023091609862], dtype=torch.float64),)
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
