"""onnxruntime: LSTM makes ordinary numbers of NaN (its sigmoid and tanh limit their argument by comparisons); PyTorch hands NaN on."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.LSTM(1, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x)[0]


file = Path(tempfile.mkdtemp()) / "lstm.onnx"
module, x = Recurrent().eval(), torch.tensor([[[float("nan")]]])
torch.onnx.export(module, (x,), dynamo=True, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
expected, got = module(x).detach().numpy(), session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
print("expected", expected.ravel(), "onnxruntime", got.ravel())
sys.exit(not np.isnan(got).all())
