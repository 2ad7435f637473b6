"""What a file in int8 answers on CPUs without VNNI."""

from __future__ import annotations

import numpy as np
import pytest

import onnxproof
from fake import FakeCandidate
from lowered import change, lower, net
from onnxproof.parity import verifier
from onnxproof.parity.declared import Meaning
from onnxproof.parity.saturation import choose_saturating
from onnxproof.proof.artifact import Precision
from onnxproof.request.session import SessionSettings
from onnxproof.request.specs import ProviderSpec


def halve(stored):
    """Seven bits."""
    return np.clip(stored, -64, 64)


def prove(path, out):
    return onnxproof.prove(*net(), onnx=str(path), out=out, fast=True, in_process=True, budget=10.0)


def tell(proof):
    return [finding for finding in proof.findings if finding.code == "OX234"]


@pytest.mark.parametrize("kind", ["int8 static", "int8 dynamic"])
def test_ox234_a_saturating_pair_is_told_and_located(kind, tmp_path):
    [told] = tell(prove(lower(kind), tmp_path))
    assert told.severity == ("review" if told.evidence["here"] and told.evidence["decibels"] < 25 else "note")
    assert told.evidence["nodes"][0]["pairs"] > 0
    assert "linear" in told.where.node
    assert "VNNI" in told.message
    assert "reduce_range" in told.help


def test_ox234_weights_of_seven_bits_are_the_same_everywhere(tmp_path):
    path = lower("int8 static")
    for name in ("first", "second", "last"):
        path = change(path, f"{name}.weight_quantized", halve, tmp_path)
    assert not tell(prove(path, tmp_path / "out"))


def test_a_runtime_that_saturates_is_held_against_that(tmp_path, monkeypatch):
    path, rows = lower("int8 dynamic"), {"x": net()[1][0].numpy()}
    there = Meaning(str(path), {}, "fused")
    probed = np.array([[2**15 - 1]], np.int32)

    def run(inputs, settings):
        if "x" in inputs and inputs["x"].dtype == np.uint8:
            return {"y": probed}
        return {name: value.astype(np.float32) for name, value in there.evaluate(inputs).items()}

    outputs = [*there.evaluate(rows)]
    fake = FakeCandidate(run, outputs=[*outputs, "y"])
    monkeypatch.setattr(verifier, "choose_candidate", lambda settings: fake)
    proof = prove(path, tmp_path)
    assert "OX201" not in {finding.code for finding in proof.findings}
    assert tell(proof)[0].evidence["here"]
    assert proof.verdict == "review"


INT8 = Precision("int8 static", "int8 static")


@pytest.mark.parametrize(
    ("precision", "session", "how"),
    [
        (INT8, SessionSettings(), "fused"),
        (INT8, SessionSettings(optimization="basic"), "integers"),
        (INT8, SessionSettings(providers=(ProviderSpec("CUDAExecutionProvider"),)), None),
        (Precision("float16", "float16"), SessionSettings(), None),
        (None, SessionSettings(), None),
    ],
)
def test_where_bytes_are_multiplied(precision, session, how):
    assert choose_saturating(precision, session) == how
