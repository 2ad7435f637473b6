"""torch.onnx: `heaviside` of NaN is 0 in PyTorch; the file has Where(x == 0, v, Where(x < 0, 0, 1)), which is 1."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Step(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.heaviside(x, torch.tensor(0.5))


file = Path(tempfile.mkdtemp()) / "step.onnx"
x = torch.tensor([1.0, float("nan")])
torch.onnx.export(Step(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Step()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((got != expected).any()))
