"""torch.onnx: `remainder` of floats is x − floor(x / y)·y; PyTorch's is exact, and here the digits of a large x are lost."""

import tempfile
from pathlib import Path

import onnxruntime
import torch


class Remainder(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.remainder(x, 0.4)


file = Path(tempfile.mkdtemp()) / "remainder.onnx"
x = torch.tensor([1000.0, 999.9])
torch.onnx.export(Remainder(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
print(
    "expected", Remainder()(x).numpy(), "onnxruntime", session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
)
