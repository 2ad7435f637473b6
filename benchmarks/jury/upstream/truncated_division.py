"""torch.onnx (dynamo): an integer division that truncates goes through float32 and loses all but 24 bits."""

import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.div(x, 3, rounding_mode="trunc")


x = torch.tensor([7, -7, 100_000_001, 2**40 + 1])
model = torch.onnx.export(Model(), (x,), dynamo=True, verbose=False).model_proto
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print("PyTorch", Model()(x).tolist(), "onnxruntime", session.run(None, {"x": x.numpy()})[0].tolist())
