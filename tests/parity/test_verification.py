"""Verification above the seam: whatever a candidate does becomes a result or a finding, and its role decides how grave it is."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxproof
from fake import FakeCandidate
from onnxproof.errors import FindingError, Rejected
from onnxproof.findings import decide_verdict, found
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.truth import Truth
from onnxproof.parity.verification import verify
from onnxproof.policy.judgement import judge
from onnxproof.request.thresholds import Policy
from seam import CASE, Heard, Mlp


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def raising(error: Exception):
    def answer(inputs, settings):
        raise error

    return answer


def test_a_right_candidate_ships_and_stages_are_roles(mlp):
    heard = Heard()
    verify(mlp.verifier(FakeCandidate(mlp.right), heard), heard.listener())
    assert decide_verdict(judge(heard.findings, heard.cases, Policy())) == "ship"
    of_first = [stage for case, stage in heard.stages if case == heard.cases[0].name]
    assert of_first[:4] == ["inputs", "baseline", "candidate", "truth"]
    assert set(heard.cases[0].seconds) >= {"pytorch", "float64", "onnxruntime"}


def test_a_wrong_candidate_does_not(mlp):
    heard = Heard()
    verify(mlp.verifier(FakeCandidate(mlp.wrong_where(lambda settings: True)), heard), heard.listener())
    assert {"OX201"} <= {f.code for f in judge(heard.findings, heard.cases, Policy()) if f.weight}


def test_memory_that_the_candidate_lacks_blocks_and_that_of_others_is_told(mlp, monkeypatch):
    heard = Heard()
    verifier = mlp.verifier(FakeCandidate(raising(MemoryError("64 GB"))), heard)
    verify(verifier, heard.listener())
    assert {(f.code, f.severity, f.evidence["stage"]) for f in heard.findings} == {("OX003", "block", "onnxruntime")}
    assert "stage onnxruntime" in heard.findings[0].message
    heard.findings.clear()
    monkeypatch.setattr(verifier.eager, "run", raising_run)
    verify(verifier, heard.listener())
    assert {(f.code, f.severity, f.evidence["stage"]) for f in heard.findings} == {("OX003", "note", "pytorch")}


def raising_run(inputs):
    raise MemoryError("128 GB")


def test_a_refusal_is_a_failed_case(mlp):
    result = mlp.verifier(FakeCandidate(raising(Rejected("no such size"))), Heard()).run(CASE)
    assert (result.status, result.message) == ("failed", "no such size")


@pytest.mark.parametrize("answer", [{}, {"another": np.zeros((3, 5), np.float32)}])
def test_an_output_that_does_not_come_is_a_failed_case(mlp, answer):
    result = mlp.verifier(FakeCandidate(lambda inputs, settings: answer), Heard()).run(CASE)
    assert result.status == "failed"
    assert "fake does not answer 'output'" in result.message
    assert judge((), [result], Policy())[0].weight == 2


def test_another_dtype_is_seen(mlp):
    def wide(inputs, settings):
        return {"output": mlp.right(inputs, settings)["output"].astype(np.float64)}

    result = mlp.verifier(FakeCandidate(wide), Heard()).run(CASE)
    assert not result.outputs[0].same_form


def test_what_a_session_says_of_its_placement_is_a_finding(mlp):
    heard, said = Heard(), found("OX305", "not every node runs there")
    mlp.verifier(FakeCandidate(mlp.right, placed=said), heard)
    assert heard.findings == [said]


def test_a_refused_file_ends_it(mlp):
    with pytest.raises(FindingError, match="no such file format"):
        mlp.verifier(FakeCandidate(mlp.right, refused=found("OX303", "no such file format")), Heard())


class Attention(nn.Module):
    """What its first half learns matters only where there are two tokens to choose between."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.ask, self.say = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.ask(x) @ x.mT, -1) @ self.say(x)


@pytest.fixture
def attention(tmp_path):
    """An export in which one weight of the first half is another, and what is asked for."""
    module, inputs = Attention().eval(), (torch.randn(2, 5, 6),)
    asked = {"dynamic": {"x": {0: "batch", 1: "tokens"}}}
    onnxproof.export(module, inputs, out=tmp_path / "right", **asked)
    model = onnx.load(tmp_path / "right" / "model.onnx")
    tensor = next(t for t in model.graph.initializer if t.name == "ask.bias")
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    return lambda: onnxproof.verify(
        module, inputs, onnx=tmp_path / "wrong.onnx", out=tmp_path / "out", fast=True, **asked
    )


def test_the_example_is_evaluated_in_float64_whatever_was_before_it(attention, monkeypatch):
    """Sizes of one come first and show nothing of an attention."""
    monkeypatch.setattr("onnxproof.parity.exactness.GRACE", 0.0)
    monkeypatch.setattr("onnxproof.parity.exactness.EXACTNESS_SHARE", 0.0)
    looked = {case.name: case.outputs[0].exactness for case in attention().cases if case.outputs[0].exactness}
    alone, example = looked["batch=1,tokens=1/normal/seed=0"], looked["batch=2,tokens=5/example/seed=0"]
    assert alone.ratio <= 1 < example.ratio


@pytest.mark.parametrize("dear", [True, False])
def test_where_legal_roundings_are_dear_another_meaning_spares_them(attention, monkeypatch, dear):
    asked = []
    sample = DoubleRunner.sample

    def count(self, inputs, seed, *, constants_only=False, unit=None):
        asked.extend([seed] if unit is None and not constants_only else [])
        return sample(self, inputs, seed, constants_only=constants_only, unit=unit)

    monkeypatch.setattr(DoubleRunner, "sample", count)
    monkeypatch.setattr("onnxproof.parity.verifier.DEAR", 0.0 if dear else 1e9)
    proof = attention()
    assert proof.verdict == "block"
    assert {f.code for f in proof.findings if f.severity == "block"} == {"OX201"}
    assert set(asked) == (set() if dear else {1, 2, 3})


def test_what_was_held_against_a_truth_that_is_none_is_forgotten(attention, monkeypatch):
    """Three roundings decide only where the graph is known to mean something else: not by a truth that was given up."""
    asked = []
    sample = DoubleRunner.sample

    def count(self, inputs, seed, *, constants_only=False, unit=None):
        asked.extend([seed] if unit is None and not constants_only else [])
        return sample(self, inputs, seed, constants_only=constants_only, unit=unit)

    kept = []
    forget = Truth.forget_changed

    def note(self, outputs):
        forget(self, outputs)
        kept.extend(v for name, v in self._ledger.shown.items() if "changed/" in name)

    monkeypatch.setattr(Truth, "forget_changed", note)
    monkeypatch.setattr("onnxproof.parity.truth.is_credible", lambda *arguments: False)
    monkeypatch.setattr(DoubleRunner, "sample", count)
    attention()
    assert max(asked) > 3
    assert kept
    assert not any(kept)


class AskedElsewhere(nn.Module):
    """One output deals with NaN; the other hands it on, and onnxruntime's pooling does not."""

    def forward(self, x):
        return torch.nan_to_num(x) + 1, nn.functional.max_pool2d(x, 2)


def test_where_the_module_has_no_number_itself_it_did_not_ask(tmp_path):
    model, example = AskedElsewhere().eval(), (torch.randn(2, 1, 4, 4),)
    assert onnxproof.prove(model, example, out=tmp_path / "a").verdict == "ship"
    asked = onnxproof.verify(model, example, onnx=tmp_path / "a" / "model.onnx", nonfinite=True, fast=True)
    assert asked.verdict == "block"
    assert {"OX205"} <= {f.code for f in asked.findings if f.where.output == "output_1"}


def test_nan_that_the_module_makes_a_number_of_still_counts(tmp_path):
    model, example = AskedElsewhere().eval(), (torch.randn(2, 1, 4, 4),)
    right = onnxproof.export(model, example, out=tmp_path)
    wrong = onnx.load(right.artifact.path)
    guards = [node for node in wrong.graph.node if node.op_type in ("IsNaN", "IsInf")]
    assert guards
    for node in guards:  # nothing is NaN any more
        node.op_type = "Equal"
        del node.attribute[:]
        node.input.append("never")
    wrong.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(12345.0).reshape(1), "never"))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    proof = onnxproof.verify(model, example, onnx=tmp_path / "wrong.onnx", fast=True)
    assert proof.verdict == "block"
    assert "output_0" in {f.where.output for f in proof.findings if f.severity == "block"}
