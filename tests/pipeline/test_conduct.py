"""A request to its end: the verdict is told when it is certain, and what it took is told by stage."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import models
import onnxproof
from onnxproof.pipeline.collected import Progress


@pytest.fixture
def wrong(exported, tmp_path):
    """An export with one bias moved."""
    model = onnx.load(exported("mlp"))
    bias = next(tensor for tensor in model.graph.initializer if tensor.name.endswith("bias"))
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + np.float32(0.25), bias.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    return tmp_path / "wrong.onnx"


def proved(wrong, **options):
    """The proof, and what was told before it was done."""
    early: list[onnxproof.Proof] = []
    progress = Progress(verdict=early.append)
    proof = onnxproof.prove(*models.mlp(), onnx=wrong, out=wrong.parent / "out", progress=progress, **options)
    return proof, early


def test_the_verdict_comes_before_its_cause(wrong):
    proof, early = proved(wrong)
    assert [one.verdict for one in early] == [proof.verdict] == ["block"]
    assert not early[0].blame
    assert proof.blame
    assert proof.counterexamples
    assert list(proof.timing.stages) == ["export", "verify", "locate"]
    assert sum(proof.timing.stages.values()) <= proof.timing.seconds


def test_fast_stops_at_the_verdict(wrong):
    proof, early = proved(wrong, fast=True)
    assert proof.verdict == "block"
    assert not early
    assert not proof.blame
    assert not proof.counterexamples


def test_a_verdict_that_may_still_change_is_not_told(wrong):
    assert not proved(wrong, heal=True)[1]
