"""torch.onnx: `erfc` is written as 1 − erf(x), which has no digits of a small result and is 0 above 3.9."""

import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch


class Complement(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.erfc(x)


file = Path(tempfile.mkdtemp()) / "erfc.onnx"
x = torch.tensor([3.0, 4.5, 7.5])
torch.onnx.export(Complement(), (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = torch.erfc(x).numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected, "onnxruntime", got)
sys.exit(bool((abs(got - expected) > 1e-4 * expected).any()))
