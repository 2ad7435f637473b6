"""`--baseline`: only what got worse gates, and what is known stays visible."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from conftest import target
from onnxproof.findings import Finding, Where, found
from onnxproof.policy.baseline_findings import WORSE, list_known, recognise
from onnxproof.proof.schema import read_schema
from onnxproof.proved import Proof
from proofs import make_proof


def wrong(**where) -> Finding:
    evidence = {"max_abs": where.pop("max_abs", 0.1)}
    stage = where.pop("stage", "translate")
    return found("OX201", "differs", where=Where(**{"output": "y", **where}), stage=stage, evidence=evidence)


def known(today: Finding, *earlier: Finding) -> bool:
    return recognise(today, list_known(earlier)).known is not None


def test_the_same_finding_is_known():
    assert known(wrong(module="encoder.0", node="n1"), wrong(module="encoder.0", node="n1"))
    assert known(wrong(module="encoder.0", node="n1"), wrong(module="encoder.0", node="renamed"))


@pytest.mark.parametrize(
    "today",
    [
        wrong(output="z"),
        wrong(module="decoder"),
        wrong(module="", node="other"),
        wrong(stage="kernel"),
        found("OX205", "NaN", where=Where(output="y")),
        wrong(max_abs=0.1 * WORSE * 1.01),
    ],
    ids=["another output", "another module", "another node", "another stage", "another code", "larger"],
)
def test_something_else_is_new(today):
    earlier = wrong(module="encoder.0") if today.where.module == "decoder" else wrong(module="", node="n")
    assert not known(today, earlier)


def test_a_graver_one_is_new_and_a_milder_one_is_known():
    review = found("OX202", "silent change", where=Where(output="y"), stage="translate")
    assert not known(wrong(), review)
    assert known(review, wrong())
    assert not known(review, wrong(output="z"))


def test_a_place_that_was_not_found_out_is_no_other_place():
    assert known(wrong(module="encoder.0", node="n"), wrong())
    assert known(wrong(), wrong(module="encoder.0", node="n"))


def test_nothing_compared_is_never_known():
    nothing = found("OX004", "nothing was compared")
    assert not known(nothing, nothing)


def test_a_proof_against_itself_ships_and_says_why():
    proof = make_proof(wrong=2)
    assert proof.verdict == "block"
    against = proof.against(proof)
    assert against.verdict == "ship"
    assert [f.code for f in against.findings if f.known] == ["OX201"]
    again = Proof.loads(against.dumps())
    assert again.judged(again.policy).verdict == "ship"
    jsonschema.validate(json.loads(against.dumps()), read_schema())


def test_a_proof_that_got_worse_does_not():
    baseline = make_proof(wrong=2, outputs=("a", "b"))
    good = replace(baseline, cases=tuple(replace(c, outputs=(c.outputs[0],)) for c in baseline.cases))
    good = good.judged(good.policy)
    assert {f.where.output for f in good.findings} == {"a"}
    worse = baseline.against(good)
    assert worse.verdict == "block"
    assert {f.where.output: f.known is not None for f in worse.findings} == {"a": True, "b": False}
    assert make_proof(wrong=2, error=0.3).against(make_proof(wrong=2, error=0.01)).verdict == "block"


@pytest.fixture
def folder(tmp_path):
    make_proof(wrong=2).save(tmp_path / "today.json")
    make_proof(wrong=2).save(tmp_path / "baseline.json")
    make_proof().save(tmp_path / "clean.json")
    return tmp_path


def test_report_with_a_baseline(cli, folder):
    assert cli("report", "today.json").returncode == 1
    known = cli("report", "today.json", "--baseline", "baseline.json", "--markdown", "c.md", "--json", "out.json")
    assert known.returncode == 0, known.stderr
    assert known.stdout.startswith("SHIP  fixture: 24 cases compared, nothing but 1 known from the baseline")
    assert "OX201 known" in known.stdout
    assert "known: " not in (folder / "c.md").read_text().splitlines()[0]
    finding = json.loads((folder / "out.json").read_text())["findings"][0]
    assert finding["known"]
    assert cli("report", "out.json").returncode == 0
    new = cli("report", "today.json", "--baseline", "clean.json")
    assert new.returncode == 1
    assert cli("report", "today.json", "--baseline", "missing.json").returncode == 2


@pytest.mark.slow
def test_prove_with_a_baseline(cli, here):
    first = here("prove", target("epsilon"), "--batch-sizes", "3", "--out", "a")
    assert first.exit_code == 1, first.stderr
    second = here("prove", target("epsilon"), "--batch-sizes", "3", "--out", "b", "--baseline", "a/proof.json")
    assert second.exit_code == 0, second.stdout
    assert "known from the baseline" in second.stdout.splitlines()[0]
    early = cli("prove", target("epsilon"), "--baseline", "missing.json")
    assert early.returncode == 2
    assert "there is no proof missing.json" in early.stderr
