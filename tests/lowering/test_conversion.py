"""Files in a lower precision: what stays in float stays there, and a mask's infinity is no range."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxproof
from lowered import lower
from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph
from onnxproof.lowering.conversion import Unsuitable, convert, list_places
from onnxproof.request.lowering import Lowering

ROWS = [{"x": np.random.default_rng(0).standard_normal((16, 20)).astype("f4")}]


def counts(path):
    precision = recognise_precision(Graph.read(path))
    return {} if precision is None else dict(precision.operators)


@pytest.mark.parametrize("kind", ["int8 dynamic", "int8 static", "int4"])
def test_a_node_that_is_kept_stays_in_float(kind, tmp_path):
    plain = lower("float32")
    last = list_places(plain)["last"] if "last" in list_places(plain) else onnx.load(plain).graph.node[-1].name
    convert(plain, tmp_path / "all.onnx", Lowering(kind), ROWS)
    kept = convert(plain, tmp_path / "but.onnx", Lowering(kind, kept=(last,)), ROWS)
    assert kept == (last,)
    assert sum(low for low, _ in counts(tmp_path / "all.onnx").values()) == 3
    assert sum(low for low, _ in counts(tmp_path / "but.onnx").values()) == 2


def test_half_floats_that_are_kept(tmp_path):
    plain = lower("float32")
    convert(plain, tmp_path / "half.onnx", Lowering("fp16", kept=(onnx.load(plain).graph.node[0].name,)))
    stored = {t.name: t.data_type for t in onnx.load(tmp_path / "half.onnx").graph.initializer}
    assert stored["first.weight"] == onnx.TensorProto.FLOAT
    assert stored["last.weight"] == onnx.TensorProto.FLOAT16


class Causal(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.mix, self.mask = nn.Linear(8, 24), mask

    def forward(self, x):
        q, k, v = self.mix(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) + torch.full((5, 5), self.mask).triu(1)
        return scores.softmax(-1) @ v


@pytest.mark.parametrize("mask", [float("-inf"), torch.finfo(torch.float32).min])
def test_a_mask_gives_no_range(mask, tmp_path):
    made = onnxproof.export(Causal(mask).eval(), (torch.randn(2, 5, 8),), out=tmp_path)
    rows = [{"x": np.random.default_rng(0).standard_normal((2, 5, 8)).astype("f4")}]
    kept = convert(tmp_path / "model.onnx", tmp_path / "low.onnx", Lowering("int8 static"), rows)
    assert made.artifact is not None
    assert kept
    scales = [t for t in onnx.load(tmp_path / "low.onnx").graph.initializer if t.name.endswith("_scale")]
    assert scales
    assert all((onnx.numpy_helper.to_array(t) < 100).all() for t in scales)


def test_a_model_without_products_cannot_be_lowered(tmp_path):
    onnxproof.export(nn.Tanh(), (torch.randn(2, 5),), out=tmp_path)
    with pytest.raises(Unsuitable, match="no product"):
        convert(tmp_path / "model.onnx", tmp_path / "low.onnx", Lowering("int8 dynamic"))
