"""torch.onnx: `clamp_min` (every `F.normalize` has one) is a Clip without max, whose default is the largest number: infinity becomes 3.4e38.

The standard says so (numeric_limits::max()), onnxruntime does so; PyTorch keeps infinity, and inf / inf is NaN there.
"""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Limit(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp_min(0.001)


file = Path(tempfile.mkdtemp()) / "limit.onnx"
x = torch.tensor([1.0, float("inf")])
torch.onnx.export(Limit(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Limit()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((got != expected).any()))
