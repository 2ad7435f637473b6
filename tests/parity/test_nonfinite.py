"""Which outputs a module was asked about NaN and infinities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.nonfinite import find_asked, follow_unasked
from onnxproof.subject.subject import Subject


class Places(nn.Module):
    """Places know nothing of NaN; the sum beside them does."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.argsort(1), torch.nansum(x, dim=-1)


class Guarded(nn.Module):
    """The same places, of what has no NaN any more."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole = torch.nan_to_num(x)
        return whole.argsort(1), whole.sum(-1)


class Chosen(nn.Module):
    """Python decides by an answer what everything is made of."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = 0.0 if bool(torch.isnan(x).any()) else 1.0
        return torch.ones(2) * scale, x.exp()


class Written(nn.Module):
    """What is written into a copy where there is NaN."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        filled = x.clone()
        filled[torch.isnan(x)] = 0.0
        return filled * 2, x * 2


class Counted(nn.Module):
    """A question that only whole numbers arrive at."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nan_to_num(x.argmax(1).float().sqrt())


X = torch.tensor([[float("nan"), 1.0, 0.0, 2.0], [3.0, 1.0, 0.5, 2.0]])


@pytest.mark.parametrize(
    ("module", "asked"),
    [
        (Places(), {"output_1"}),
        (Guarded(), {"output_0", "output_1"}),
        (Chosen(), {"output_0", "output_1"}),
        (Written(), {"output_0"}),
        (Counted(), set()),
        (nn.Tanh(), None),
    ],
)
def test_what_follows_from_a_question_that_met_one(module, asked):
    double = DoubleRunner(Subject(module.eval(), (X,), {}, "m"))
    inputs = {name: tensor.numpy() for name, tensor in Subject(module, (X,), {}, "m").inputs.tensors.items()}
    double.run(inputs)
    assert find_asked(double, inputs) == asked


def test_numbers_that_nobody_asked_for_are_left_out():
    odd = np.array([np.nan, 1.0], np.float32)
    baseline = {"asked": odd, "beside": np.array([3, 1])}
    candidate = {"asked": np.array([5.0, 2.0], np.float32), "beside": np.array([1, 3])}
    left = follow_unasked(baseline, candidate, {"asked"})
    np.testing.assert_array_equal(left["asked"], np.array([np.nan, 2.0], np.float32))
    np.testing.assert_array_equal(left["beside"], baseline["beside"])
    assert follow_unasked(baseline, candidate)["beside"] is candidate["beside"]


def test_an_order_of_nan_counts_only_where_the_module_deals_with_it(tmp_path):
    """onnxruntime has NaN anywhere in an order; a sum beside it that leaves NaN out asks nothing of the order."""
    proof = onnxproof.prove(Places().eval(), (torch.randn(2, 5),), out=tmp_path)
    assert proof.verdict == "ship"


def test_a_guard_that_is_lost_gates(tmp_path):
    onnxproof.export(Bare().eval(), (torch.randn(2, 4),), out=tmp_path / "bare")
    onnx_file = tmp_path / "bare" / "model.onnx"
    proof = onnxproof.verify(Summed().eval(), (torch.randn(2, 4),), onnx=onnx_file, out=tmp_path / "out", fast=True)
    assert proof.verdict == "block"


class Bare(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


class Summed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nansum(x, dim=-1)
