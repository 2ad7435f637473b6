"""torch.onnx: a quotient that is rounded down is Floor(Div(x, y)); PyTorch, as Python, gives −1 for −1 // ∞."""

import tempfile
from pathlib import Path

import onnxruntime
import torch


class Divide(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.div(x, y, rounding_mode="floor")


file = Path(tempfile.mkdtemp()) / "divide.onnx"
given = (torch.tensor([-1.0]), torch.tensor([float("inf")]))
torch.onnx.export(Divide(), given, dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
feed = {port.name: tensor.numpy() for port, tensor in zip(session.get_inputs(), given, strict=True)}
print("expected", Divide()(*given).numpy(), "onnxruntime", session.run(None, feed)[0])
