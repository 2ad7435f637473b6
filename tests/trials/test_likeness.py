"""Likeness: equal pieces of different models are one, and what changes a meaning makes another."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from onnxproof.graph.evaluator import Evaluator
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.request.specs import Range
from onnxproof.subject.assembly import make_subject
from onnxproof.trials.calls import record
from onnxproof.trials.likeness import describe_piece
from onnxproof.trials.pieces import Cut, find_common, show_values

X = np.linspace(-2, 8, 12, dtype=np.float32).reshape(2, 6)


class Head(nn.Module):
    def __init__(self, weight: np.ndarray) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(weight))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x @ self.weight, max=6.0)


def likenesses(
    weight: np.ndarray, stored: np.ndarray, cap: float = 6.0, ranges: dict[str, Range] | None = None
) -> list[str]:
    """Of the pieces of a product and a clamp; `stored` is the weight that the file has."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,6] x, float[6,6] w) => (float[2,6] y) <float six = {{{cap}}}> {{ z = MatMul(x, w)  y = Min(z, six) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(stored, "w"))
    del model.graph.input[1]
    program = record(DoubleRunner(make_subject(Head(weight).eval(), (torch.from_numpy(X),))), {"x": X})
    evaluator = Evaluator.exact(model, keep_lossy_casts=True)
    values = show_values(evaluator, {"x": X.astype(np.float64)})
    cut = Cut(evaluator, program, values, find_common(evaluator, values, program, {}))
    return [describe_piece(cut, piece, ranges or {}) for piece in cut.pieces().values() if piece]


@pytest.fixture
def weight() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)


def test_other_weights_on_both_sides_make_no_other_piece(weight):
    assert likenesses(weight, weight) == likenesses(weight + 1, weight + 1)


def test_a_weight_that_only_the_file_has_does(weight):
    rounded = weight + np.float32(1e-8)  # so near that the values are still common
    assert likenesses(weight, weight)[-1] == likenesses(weight, rounded)[-1]  # the clamp
    assert likenesses(weight, weight)[0] != likenesses(weight, rounded)[0]  # the product


def test_a_limit_does_so_by_its_value(weight):
    small = weight * 0.01  # which no limit meets: both files have the same values
    assert likenesses(small, small, 6.0)[-1] != likenesses(small, small, 7.0)[-1]


def test_a_range_does_so_roughly(weight):
    def near(high: float) -> str:
        return likenesses(weight, weight, ranges={"z": Range(0.0, high)})[-1]

    assert near(100.0) == near(105.0)
    assert near(100.0) != near(np.inf)
