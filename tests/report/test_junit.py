"""JUnit: what a pipeline counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from onnxproof.findings import found
from onnxproof.report.junit import render_junit
from proofs import full_proof, make_proof

NASTY = "a|b <img src=x onerror=alert(1)> `c` @someone\x00\x1b[31m\n- d ::error::"


@pytest.fixture(scope="module")
def junit_schema():
    return xmlschema.XMLSchema(str(Path(__file__).parents[1] / "junit.xsd"))


def cases_of(xml: str) -> dict[tuple[str, str], ElementTree.Element]:
    return {(c.get("classname"), c.get("name")): c for c in ElementTree.fromstring(xml).iter("testcase")}


@pytest.mark.parametrize(
    "proof",
    [
        make_proof(),
        full_proof(),
        replace(make_proof(cases=0), artifact=None),
        full_proof(name=NASTY, outputs=(NASTY, "other"), observed=(found("OX306", NASTY, help=NASTY),)),
    ],
    ids=["ship", "block", "no case", "nasty names"],
)
def test_junit_is_valid(proof, junit_schema):
    xml = render_junit(proof)
    junit_schema.validate(xml)
    root = ElementTree.fromstring(xml)
    assert int(root.get("tests")) == len(list(root.iter("testcase")))
    failing = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert int(root.get("failures")) == len(failing)
    assert bool(failing) == (proof.verdict != "ship")


def test_junit_names_the_outputs_that_fail_and_the_sizes():
    proof = make_proof(wrong=2, outputs=("logits", "hidden"))
    right = replace(proof.cases[-1].outputs[1], **vars(proof.cases[0].outputs[1]))
    cases = tuple(replace(c, outputs=(c.outputs[0], replace(right, output="hidden"))) for c in proof.cases)
    xml = render_junit(replace(proof, cases=cases).judged(proof.policy))
    found_cases = cases_of(xml)
    failing = [key for key, case in found_cases.items() if case.find("failure") is not None]
    assert failing == [("onnxproof.fixture.batch=3", "logits"), ("onnxproof.fixture.findings", "parity")]
    failure = found_cases[failing[0]].find("failure")
    assert failure.get("type") == "OX201 block"
    assert "where: output logits" in failure.text
    assert "help:" in failure.text
    assert found_cases["onnxproof.fixture.findings", "latency"].find("skipped") is not None


def test_junit_fails_a_size_whose_finding_is_told_by_a_graver_one():
    from onnxproof.proof.comparison import Exactness

    proof = make_proof(wrong=1)
    inexact = replace(proof.cases[0].outputs[0], exactness=Exactness(1e-4, 1e-9, 1e5))
    cases = (replace(proof.cases[0], outputs=(inexact,)), *proof.cases[1:])
    proof = replace(proof, cases=cases).judged(proof.policy)
    assert [f.code for f in proof.findings] == ["OX201"]
    shown = cases_of(render_junit(proof))
    failing = {key[0] for key, case in shown.items() if case.find("failure") is not None}
    assert {"onnxproof.fixture.batch=1", "onnxproof.fixture.batch=3"} <= failing
    assert "onnxproof.fixture.batch=2" not in failing


def test_junit_accepted_findings_do_not_fail():
    proof = make_proof(wrong=1)
    accepted = proof.judged(replace(proof.policy, accept={"OX201": "known for years"}))
    assert accepted.verdict == "ship"
    xml = render_junit(accepted)
    assert 'failures="0"' in xml.splitlines()[1]
    assert "accepted: known for years" in xml
