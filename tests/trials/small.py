"""A module and files of it, for trials: right, or with one operator that errs where inputs seldom get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import torch
from torch import nn

import onnxproof


class Capped(nn.Module):
    """A cap behind a norm, and a table that is looked up by the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.units, self.table = nn.LayerNorm(64), nn.Linear(64, 5), nn.Embedding(5, 3)
        # Unit rows with a mean of zero: one passes six for inputs along it, and for hardly any other.
        with torch.no_grad():
            random = torch.randn(64, 5)
            self.units.weight.copy_(torch.linalg.qr(random - random.mean(0))[0].T)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.clamp(self.units(self.norm(x)), max=6.0)
        return self.table(y.argmax(-1)) + y[:, :3]


def capped() -> tuple[nn.Module, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    return Capped().eval(), (torch.randn(3, 64),)


def export(folder: Path, change: Callable[[onnx.ModelProto], None] = lambda model: None) -> Path:
    """The file, changed."""
    onnxproof.export(*capped(), out=folder)
    model = onnx.load(folder / "model.onnx")
    change(model)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def raise_cap(model: onnx.ModelProto) -> None:
    """Seven for six."""
    clip = next(node for node in model.graph.node if node.op_type in ("Clip", "Min"))
    name = clip.input[-1]
    stored = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    stored.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(stored) + 1, name))
