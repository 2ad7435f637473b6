"""torch.onnx: `interpolate` with antialias drops scale_factor: PyTorch weighs by it, the file by the ratio of the sizes, which differs where they are no multiples."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Shrink(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)


file = Path(tempfile.mkdtemp()) / "shrink.onnx"
x = torch.arange(25.0).reshape(1, 1, 5, 5) ** 2
torch.onnx.export(Shrink(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Shrink()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected.ravel(), "onnxruntime", got.ravel())
sys.exit(bool(abs(got - expected).max() > 0.1))
