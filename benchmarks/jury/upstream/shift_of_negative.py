"""torch.onnx (TorchScript): `x >> 1` of a negative integer is a division that rounds towards zero, where a shift rounds down."""

import io

import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x >> 1


x, file = torch.tensor([7, -7, -1]), io.BytesIO()
torch.onnx.export(Model(), (x,), file, dynamo=False, opset_version=20, input_names=["x"])
session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
print("PyTorch", Model()(x).tolist(), "onnxruntime", session.run(None, {"x": x.numpy()})[0].tolist())
