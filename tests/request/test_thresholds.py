"""A policy that accepts what can never be accepted cannot be made, by whichever face."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import onnxproof
from conftest import target
from onnxproof.api import make_policy
from onnxproof.errors import UserError
from onnxproof.proof.proof import Proof
from onnxproof.request.thresholds import Policy
from proofs import make_proof

NEVER = "accept OX004: nothing compared is never a pass, so it cannot be accepted"
UNKNOWN = "accept OX999: there is no such code"


@pytest.mark.parametrize(("code", "message"), [("OX004", NEVER), ("OX999", UNKNOWN), ("ox201", "accept ox201: there")])
def test_from_python(code, message, tmp_path):
    accept = {"OX201": "fine", code: "please"}
    with pytest.raises(UserError, match=message):
        Policy(accept=accept)
    with pytest.raises(UserError, match=message):
        make_policy(accept=accept)
    with pytest.raises(UserError, match=message):
        onnxproof.prove(target("tutorial"), out=tmp_path, accept=accept)
    with pytest.raises(UserError, match=message):
        replace(make_proof().policy, accept=accept)


@pytest.mark.parametrize(("code", "message"), [("OX004", NEVER), ("OX999", UNKNOWN)])
def test_from_the_command_line_and_its_configuration(inside, tmp_path, code, message):
    make_proof().save(tmp_path / "proof.json")
    for command in (["prove", target("tutorial")], ["lint", "m.onnx"], ["report", "proof.json"]):
        result = inside(*command, "--accept", code, "--reason", "please")
        assert (result.returncode, message in result.stderr) == (2, True), command
    (tmp_path / "onnxproof.toml").write_text(f'accept = {{ {code} = "please" }}\n')
    result = inside("prove", target("tutorial"))
    assert result.returncode == 2
    assert message in result.stderr


def test_from_a_proof_that_was_written_with_it(tmp_path):
    data = json.loads(make_proof().dumps())
    data["policy"]["accept"] = {"OX004": "please"}
    (tmp_path / "proof.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=f"proof.json: .*{NEVER}"):
        Proof.load(tmp_path / "proof.json")


def test_what_may_be_accepted_is():
    proof = make_proof(wrong=2)
    assert (proof.verdict, proof.judged(make_policy(accept={"OX201": "fine"})).verdict) == ("block", "ship")


def test_an_output_has_the_general_contract_unless_it_has_its_own():
    policy = make_policy(atol={None: 1e-2, "logits": 1e-5})
    assert (policy.for_output("logits").atol, policy.for_output("other").atol) == (1e-5, 1e-2)
