"""torch.onnx: `logit` with eps limits by comparisons that let NaN become 1 − eps; PyTorch hands NaN on."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Logit(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logit(x, eps=1e-4)


file = Path(tempfile.mkdtemp()) / "logit.onnx"
x = torch.tensor([0.5, float("nan")])
torch.onnx.export(Logit(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Logit()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool(abs(got[1]) >= 0))
