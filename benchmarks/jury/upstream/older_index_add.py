"""torch.onnx, older exporter: `index_add` is ScatterElements without a reduction: where a place occurs twice, only one of the terms is added."""

import sys
import tempfile
import warnings
from pathlib import Path

import onnxruntime
import torch

warnings.simplefilter("ignore")


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.index_add(1, torch.tensor([1, 0, 1]), y)


file = Path(tempfile.mkdtemp()) / "sum.onnx"
x, y = torch.zeros(1, 3), torch.tensor([[1.0, 2.0, 4.0]])
torch.onnx.export(Sum(), (x, y), file, dynamo=False, input_names=["x", "y"])
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Sum()(x, y).numpy(), session.run(None, {"x": x.numpy(), "y": y.numpy()})[0]
print("expected", expected.tolist(), "onnxruntime", got.tolist())
sys.exit(bool((got != expected).any()))
