"""torch.onnx: `sign` of NaN is 0 in PyTorch; Sign, which it is translated as, says nothing of NaN, and onnxruntime gives NaN back."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Sign(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sign(x)


file = Path(tempfile.mkdtemp()) / "sign.onnx"
x = torch.tensor([1.0, float("nan")])
torch.onnx.export(Sign(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Sign()(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((got != expected).any()))
