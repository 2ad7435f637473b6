"""From end to end: an operator that errs where inputs seldom get is found, and shown by an input of the model."""

from __future__ import annotations

import torch
from torch import nn

import onnxproof
from onnxproof.report.text import render
from trials.small import capped, export, raise_cap


def test_a_right_file_agrees_in_every_piece(tmp_path):
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out")
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.tried == proof.trials.pieces > 3
    assert {one.module for one in proof.trials.modules} >= {"norm", "units", "table"}
    assert sum(one.pieces for one in proof.trials.modules) == proof.trials.pieces
    assert sum(one.values for one in proof.trials.modules) == proof.trials.values
    assert proof.trials.latent == ()
    assert "every one agreed on its own edges" in render(proof)


def test_an_operator_that_errs_beyond_the_cases_is_found_and_reached(tmp_path):
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file", raise_cap), out=tmp_path / "out", fast=True)
    assert proof.verdict == "block"
    assert proof.trials is not None
    (latent, *_) = proof.trials.latent
    assert latent.op in ("Clip", "Min")
    assert latent.reached is not None
    assert latent.expected == 6


def test_what_is_far_too_large_is_left_out_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("onnxproof.trials.calls.MOST_ELEMENTS", 10)
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out")
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.pieces == 0
    assert "too large" in str(proof.trials.reason)


class Exactly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x == 0.39


def test_a_number_that_float32_has_not_is_not_tried(tmp_path):
    """0.39 in float64 equals the module's constant and not the file's; no float32 ever does so."""
    proof = onnxproof.prove(Exactly().eval(), (torch.randn(2, 3),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()
