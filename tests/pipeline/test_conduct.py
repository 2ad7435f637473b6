"""A request to its end: the verdict is told when it is certain, and what it took is told by stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

import models
import onnxproof
import proofs
from onnxproof.errors import UserError
from onnxproof.pipeline.collected import Progress
from onnxproof.pipeline.conduct import read_earlier
from onnxproof.request.benchmark import BenchSettings


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


def test_an_earlier_proof_is_what_it_measured_without_its_samples(tmp_path):
    timed = proofs.make_proof(latency=proofs.make_latency())
    timed.save(tmp_path / "before.json")
    earlier = read_earlier(BenchSettings(baseline=str(tmp_path / "before.json")))
    assert [run.contender for run in earlier.runs] == [run.contender for run in timed.latency.runs]
    assert not any(run.samples for run in earlier.runs)
    assert read_earlier(None) is read_earlier(BenchSettings()) is None
    replace(timed, latency=None).save(tmp_path / "none.json")
    with pytest.raises(UserError, match="no times"):
        read_earlier(BenchSettings(baseline=str(tmp_path / "none.json")))
