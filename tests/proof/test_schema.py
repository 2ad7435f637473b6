"""The published schema is made from the records, and real proofs keep to it."""

from __future__ import annotations

import json

import jsonschema
import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.proof.schema import make_schema, read_schema, write_schema
from proofs import full_proof, make_proof


def test_the_published_schema_is_current():
    made = json.loads(write_schema(make_schema()))
    assert read_schema() == made, "make reference writes it anew"


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(read_schema())


@pytest.mark.parametrize("proof", [make_proof(cases=3), full_proof()], ids=["cases", "everything"])
def test_made_proofs_keep_to_it(proof):
    jsonschema.validate(json.loads(proof.dumps()), read_schema())


def test_a_real_proof_keeps_to_it(tmp_path):
    proof = onnxproof.prove(nn.Linear(4, 2).eval(), (torch.randn(3, 4),), batch_sizes=[1, 3], budget=2, out=tmp_path)
    assert proof.cases
    jsonschema.validate(json.loads(proof.dumps()), read_schema())


def test_it_knows_what_is_derived_what_may_be_missing_and_what_it_means():
    parts = read_schema()["$defs"]
    run, facts, case = parts["Run"], parts["SubjectFacts"], parts["CaseResult"]
    assert {"p50_ms", "p999_ms", "samples"} <= set(run["required"])
    assert run["properties"]["count"]["description"] == "Samples before thinning."
    assert run["properties"]["p50_ms"]["description"] == "The median."
    assert "class" in facts["properties"]
    assert "class" not in facts["required"]
    assert "sizes" not in case["required"], "the first release did not write it"
    assert parts["Confusion"]["properties"]["difference"]["type"] == "array"
    assert read_schema()["properties"]["schema"]["enum"] == ["onnxproof/1"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "perhaps"),
        (("schema",), "onnxproof/2"),
        (("cases", 0, "status"), "lost"),
        (("cases", 0, "outputs", 0, "max_abs"), "0.1"),
        (("artifact", "opset"), None),
        (("quality", "confusion", "labels"), [1]),
        (("latency", "runs", 0, "samples"), 700),
    ],
)
def test_what_is_wrong_does_not_keep_to_it(path, value):
    data = json.loads(full_proof(cases=2).dumps())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, read_schema())
