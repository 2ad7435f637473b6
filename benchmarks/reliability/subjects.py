"""Small models and files for the faults: one that is right, one whose file is wrong, and data for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODULE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def right():
    return Net().eval(), (torch.ones(2, 4),)


class Scaled(nn.Module):
    def forward(self, x):
        return x * 2


def scaled():
    return Scaled().eval(), (torch.ones(2, 3),)
"""


def write_subjects(folder: Path, rows: int = 1000) -> None:
    """Modules, a right and a wrong file, and labelled data."""
    (folder / "m.py").write_text(MODULE)
    write_scaling(folder / "right.onnx", 2.0)
    write_scaling(folder / "wrong.onnx", 2.5)
    generator = np.random.default_rng(0)
    np.savez(folder / "d.npz", x=generator.normal(size=(rows, 3)).astype(np.float32), y=generator.integers(0, 3, rows))


def write_scaling(file: Path, factor: float) -> None:
    """A file that multiplies by a number."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("x", "output")]
    weight = numpy_helper.from_array(np.array([factor], np.float32), "w")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["output"])], "g", ends[:1], ends[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)
