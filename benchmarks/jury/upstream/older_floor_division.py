"""torch.onnx, older exporter: `floor_divide` of floats and integers is a division that is cast to int64, which cuts off towards zero."""

import sys
import tempfile
import warnings
from pathlib import Path

import onnxruntime
import torch

warnings.simplefilter("ignore")


class Floor(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.floor_divide(x, 0.75)


file = Path(tempfile.mkdtemp()) / "floor.onnx"
x = torch.tensor([1.0, -0.5, -1.0])
torch.onnx.export(Floor(), (x,), file, dynamo=False, input_names=["x"])
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Floor()(x).numpy(), session.run(None, {"x": x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((got != expected).any()))
