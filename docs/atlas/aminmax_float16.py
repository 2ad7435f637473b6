"""aten.aminmax.default, float16, dynamo: another dtype on sample values (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0):
        return torch.aminmax(x0, dim=1)


inputs = (torch.tensor([[[-8.4765625, -1.765625, -4.32421875, -2.400390625, -7.94921875], [3.611328125, -8.0703125, -0.57373046875, 3.12890625, -3.033203125], [5.10546875, 1.134765625, 4.94921875, 5.7734375, -3.97265625], [3.271484375, -3.89453125, 2.8203125, -4.703125, 4.1640625], [1.822265625, -3.521484375, -4.4140625, 2.328125, 8.3984375]], [[4.3203125, -0.869140625, -0.436767578125, 5.1171875, -6.25390625], [2.9921875, -2.982421875, 5.20703125, -3.2109375, 0.445068359375], [3.0390625, 6.18359375, -1.3232421875, 8.2109375, -7.61328125], [-1.60546875, -8.9765625, 0.74560546875, 2.5546875, -3.642578125], [3.73828125, -1.458984375, -7.8203125, 6.91015625, 5.55078125]], [[4.55078125, 7.1796875, 3.30859375, 4.78515625, 7.46875], [-1.8134765625, -7.01953125, -4.42578125, -1.201171875, -0.98876953125], [-0.061004638671875, 5.15625, 2.88671875, -6.65625, -2.703125], [-2.1171875, 5.4765625, -3.265625, -3.765625, -1.447265625], [-2.2890625, -2.216796875, -8.8046875, 8.015625, 4.7890625]], [[-4.2578125, -5.6171875, 0.31298828125, 5.12890625, -6.45703125], [-3.3984375, 3.763671875, -5.8046875, -1.001953125, -6.78515625], [8.3515625, 4.8515625, -8.3203125, -4.96875, 3.189453125], [0.4931640625, 2.384765625, -7.36328125, -4.8203125, 4.08203125], [-6.86328125, -1.8876953125, 3.95703125, 4.671875, 0.5595703125]], [[2.609375, 4.00390625, -1.0517578125, -2.458984375, 6.87109375], [8.7734375, 4.16796875, -3.93359375, -7.828125, -8.8828125], [0.062255859375, -3.453125, -2.265625, -1.265625, 8.5078125], [8.53125, -0.84130859375, -2.703125, 4.37109375, -0.71826171875], [-8.5625, 2.93359375, 8.6171875, -7.1328125, -1.943359375]]], dtype=torch.float16),)
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
        same = one.dtype == other.dtype and np.allclose(one, other, 1e-2, 1e-2 * 0.1 * finite, equal_nan=True)
    if not same:
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
