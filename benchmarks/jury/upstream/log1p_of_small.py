"""torch.onnx: `log1p` is written as log(1 + x), which has no digits of a small result."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Logarithm(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(x)


file = Path(tempfile.mkdtemp()) / "log1p.onnx"
x = torch.tensor([1e-3, 1e-6, 1e-9])
torch.onnx.export(Logarithm(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = torch.log1p(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((abs(got - expected) > 1e-4 * expected).any()))
