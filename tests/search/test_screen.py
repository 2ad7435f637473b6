"""Sizes and ids that the plan left out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from benchmarks.faults import FAULTS
from benchmarks.faults.build import build, dynamic_of
from torch import nn

import onnxproof
from onnxproof.search.screen import differ


class Rows(nn.Module):
    """A table, averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20000, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids).mean(1)


def verified(tmp_path, change):
    torch.manual_seed(0)
    made = Rows().eval(), (torch.randint(0, 20000, (2, 5)),)
    onnxproof.export(*made, out=tmp_path / "file")
    model = onnx.load(tmp_path / "file" / "model.onnx")
    table = next(tensor for tensor in model.graph.initializer if tensor.dims == [20000, 4])
    table.CopyFrom(onnx.numpy_helper.from_array(change(onnx.numpy_helper.to_array(table).copy()), table.name))
    onnx.save(model, tmp_path / "file" / "model.onnx")
    return onnxproof.verify(*made, onnx=tmp_path / "file" / "model.onnx", out=tmp_path / "out", fast=True)


def lose_row(table: np.ndarray) -> np.ndarray:
    table[12345] = 0
    return table


def test_one_row_of_many_is_found(tmp_path):
    proof = verified(tmp_path, lose_row)
    assert proof.verdict == "block"
    assert [case.name for case in proof.cases if case.name.startswith("screen/ids/")]


def test_a_right_table_ships(tmp_path):
    assert verified(tmp_path, lambda table: table).verdict == "ship"


@pytest.mark.parametrize(
    ("other", "different"),
    [([1.0, 2.0], False), ([1.00001, 2.0], False), ([1.01, 2.0], True), ([np.nan, 2.0], True), ([[1.0, 2.0]], True)],
)
def test_what_looks_different(other, different):
    assert differ(np.array([1.0, 2.0], np.float32), np.array(other, np.float32)) is different
    assert differ(np.array([1, 2]), np.array([1, 3]))


class Placed(nn.Module):
    """A table of places: its last row is met at its own length alone."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 4), nn.Embedding(53, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return (self.words(ids) + self.places(torch.arange(ids.shape[1]))).mean(1)


def test_the_last_place_of_a_table_is_met(tmp_path):
    torch.manual_seed(0)
    made, dynamic = (Placed().eval(), (torch.randint(0, 30, (2, 5)),)), {"ids": {0: "batch", 1: "words"}}
    onnxproof.export(*made, out=tmp_path / "file", dynamic=dynamic)
    model = onnx.load(tmp_path / "file" / "model.onnx")
    table = next(tensor for tensor in model.graph.initializer if tensor.dims == [53, 4])
    rows = onnx.numpy_helper.to_array(table).copy()
    rows[-1] = 0
    table.CopyFrom(onnx.numpy_helper.from_array(rows, table.name))
    onnx.save(model, tmp_path / "file" / "model.onnx")
    proof = onnxproof.verify(
        *made, onnx=tmp_path / "file" / "model.onnx", out=tmp_path / "out", fast=True, dynamic=dynamic
    )
    assert proof.verdict == "block"
    assert any("words=53" in str(finding.where.case) for finding in proof.findings)


class Wave(nn.Module):
    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        return wave * 2


@pytest.mark.parametrize("declared", [None, {"samples": (1, 9000)}])
def test_what_is_cut_far_out_is_met(declared, tmp_path):
    dynamic = {"wave": {0: "batch", 1: "samples"}}
    onnxproof.export(Wave(), (torch.ones(2, 50),), out=tmp_path / "file", dynamic=dynamic)
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[batch,samples] wave) => (float[batch,cut] output)
    <int64[1] zero = {0}, int64[1] end = {4096}, int64[1] one = {1}, float two = {2.0}>
    { first = Slice(wave, zero, end, one)  output = Mul(first, two) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "cut.onnx")
    options = {"dynamic": dynamic} | ({"range": declared} if declared else {})
    proof = onnxproof.verify(
        Wave(), (torch.ones(2, 50),), onnx=tmp_path / "cut.onnx", out=tmp_path, fast=True, **options
    )
    assert proof.verdict == "block"


def test_what_only_a_large_size_shows_is_judged_at_that_size(tmp_path):
    """Places above 32767 wrap around: no few rows of such a batch show it alone."""
    fault = FAULTS["flat-index-in-int16"]
    built = build(fault, tmp_path / "file")
    proof = onnxproof.verify(
        built.target_module, built.inputs, onnx=built.onnx_path, dynamic=dynamic_of(fault), out=tmp_path, fast=True
    )
    assert proof.verdict == "block"
    assert any(case.name.startswith("screen/batch=") for case in proof.cases)
