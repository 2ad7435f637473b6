"""The proof that Python gets: the record, with its charts, its frame and its judgement."""

from __future__ import annotations

from dataclasses import fields, replace

import onnxproof
from onnxproof.policy.judgement import judge_against, judge_proof
from onnxproof.proof import proof as record
from onnxproof.proved import Proof
from onnxproof.request.thresholds import Policy, Tolerance
from proofs import make_proof

STRICT = Policy(Tolerance(1e-12, 0.0, 1e-12, promised=True))


def plain_of(proof):
    """The record without the conveniences."""
    return record.Proof(**{field.name: getattr(proof, field.name) for field in fields(record.Proof)})


def test_it_is_the_record_and_nothing_else():
    proof = make_proof(cases=2)
    assert Proof.of(plain_of(proof)) == proof
    assert [field.name for field in fields(Proof)] == [field.name for field in fields(record.Proof)]
    assert onnxproof.Proof is Proof


def test_what_is_read_and_what_is_changed_stays_one(tmp_path):
    proof = make_proof(cases=2)
    proof.save(tmp_path / "p.json")
    assert type(Proof.load(tmp_path / "p.json")) is Proof
    assert type(replace(proof, cases=())) is Proof
    assert type(proof.judged(STRICT)) is Proof
    assert type(proof.against(plain_of(proof))) is Proof


def test_a_record_is_judged_without_it():
    proof = plain_of(make_proof(cases=2, wrong=1))
    assert type(judge_proof(proof, proof.policy)) is record.Proof
    assert judge_against(proof, proof).verdict == "ship"
    assert judge_proof(plain_of(make_proof(cases=2)), STRICT).verdict == "review"
