"""torch.onnx: `floor_divide` of floats is Floor(Div(x, y)); PyTorch's is exact, and a quotient that float32 rounds up to an integer is one too many here."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Floor(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.floor_divide(x, 0.1)


file = Path(tempfile.mkdtemp()) / "floor.onnx"
x = torch.tensor([1.0, 2.0, 3.0])
torch.onnx.export(Floor(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Floor()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((got != expected).any()))
