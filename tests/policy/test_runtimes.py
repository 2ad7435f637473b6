"""What another runtime says about the verdict."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.findings import Where, found
from onnxproof.policy.judgement import judge_proof
from onnxproof.policy.runtimes import judge_runtimes
from onnxproof.proof.runtimes import RuntimeResult
from onnxproof.request.thresholds import Policy
from proofs import make_proof

MAIN = RuntimeResult("onnxruntime", "1.31.1")
REFUSED = found("OX310", "too new", where=Where(node="n"))
OLD = [RuntimeResult(f"onnxruntime=={v}", v, findings=(REFUSED,)) for v in ("1.15.0", "1.15.1")]


def test_ox330_gates_where_the_runtime_was_asked_for():
    [finding] = judge_runtimes([MAIN, *OLD])
    assert (finding.code, finding.severity, finding.where.node) == ("OX330", "block", "n")
    assert finding.message == "on onnxruntime 1.15.0–1.15.1: too new"
    assert finding.evidence["runtimes"] == ["onnxruntime==1.15.0", "onnxruntime==1.15.1"]


def test_ox330_is_a_note_where_it_was_not():
    [finding] = judge_runtimes([MAIN, *(replace(one, asked=False) for one in OLD)])
    assert finding.severity == "note"


def test_nothing_is_said_where_the_file_ships_and_the_first_speaks_for_itself():
    assert judge_runtimes([MAIN, RuntimeResult("node", "1.20.1")]) == []
    assert judge_runtimes([OLD[0], MAIN]) == []


def test_a_proof_judged_again_says_it_once():
    proof = replace(make_proof(), runtimes=(MAIN, *OLD))
    for _ in range(2):
        proof = judge_proof(proof, Policy())
        assert [f.code for f in proof.findings].count("OX330") == 1
    assert proof.verdict == "block"
