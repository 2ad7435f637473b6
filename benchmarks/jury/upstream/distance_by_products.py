"""torch.onnx, older exporter: `cdist` of a dynamic number of points is √(|x|² + |y|² − 2·x·y), which has no digits of a small distance.

PyTorch computes so only from 26 points on; up to 25 it subtracts.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import onnxruntime
import torch

warnings.simplefilter("ignore")


class Distance(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, x)


file = Path(tempfile.mkdtemp()) / "distance.onnx"
x = torch.tensor([[100.3, 99.7], [100.3, 99.8], [100.4, 99.7]])
torch.onnx.export(Distance(), (x,), file, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "points"}})
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Distance()(x).numpy(), session.run(None, {"x": x.numpy()})[0]
print("expected", expected.tolist(), "onnxruntime", got.tolist())
sys.exit(bool(abs(got - expected).max() > 1e-3))
