"""torch.onnx: `roll` takes its shift modulo the size; of something empty PyTorch gives nothing, and onnxruntime refuses the file."""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch


class Roll(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[1:].roll(-2, 0)


file = Path(tempfile.mkdtemp()) / "roll.onnx"
dynamic = ({0: torch.export.Dim.DYNAMIC},)
torch.onnx.export(Roll(), (torch.randn(4),), dynamo=True, dynamic_shapes=dynamic, verbose=False).save(file)
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
one = np.ones(1, np.float32)
print("expected", Roll()(torch.from_numpy(one)), "onnxruntime")
print(session.run(None, {session.get_inputs()[0].name: one}))
