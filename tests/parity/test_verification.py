"""Verification above the seam: whatever a candidate does becomes a result or a finding, and its role decides how grave it is."""

from __future__ import annotations

import numpy as np
import pytest

from fake import FakeCandidate
from onnxproof.errors import FindingError, Rejected
from onnxproof.findings import decide_verdict, found
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
