"""torch.onnx, older exporter: `cdist` takes the root with the exponent 1 / (p + 1e-6), not 1 / p: large and tiny distances are wrong in the sixth digit."""

import sys
import tempfile
import warnings
from pathlib import Path

import onnxruntime
import torch

warnings.simplefilter("ignore")


class Distance(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, y)


file = Path(tempfile.mkdtemp()) / "distance.onnx"
x, y = torch.tensor([[1000.0], [0.0]]), torch.tensor([[-1000.0]])
torch.onnx.export(Distance(), (x, y), file, dynamo=False, input_names=["x", "y"])
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = Distance()(x, y).numpy(), session.run(None, {"x": x.numpy(), "y": y.numpy()})[0]
print("expected", expected.ravel(), "onnxruntime", got.ravel())
sys.exit(bool(abs(got - expected).max() > 1e-3))
