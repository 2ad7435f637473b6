"""A proof file that cannot be read is said to be one: which file, which field, what was expected."""

from __future__ import annotations

import json

import pytest

from onnxproof.errors import UserError
from onnxproof.findings import decide_verdict, found
from onnxproof.proof.proof import Proof
from proofs import full_proof, make_proof


@pytest.fixture(scope="module")
def text():
    return full_proof(cases=2).dumps()


def test_a_proof_reads_back_as_itself(text, tmp_path):
    proof = Proof.loads(text)
    proof.save(tmp_path / "folder" / "proof.json")
    assert Proof.load(tmp_path / "folder" / "proof.json") == proof
    assert proof.compared == 2


def changed(text, path, value):
    data = json.loads(text)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(data)


WRONG = [
    (("subject", "name"), 3, "str", "$.subject.name"),
    (("subject",), [], "object", "$.subject"),
    (("artifact", "bytes"), "many", "int", "$.artifact.bytes"),
    (("artifact", "inputs", 0, "shape"), [[1]], "int | str | null", "$.artifact.inputs[0].shape[0]"),
    (("environment", "providers"), "CPU", "array", "$.environment.providers"),
    (("cases", 1, "profile"), None, "str", "$.cases[1].profile"),
    (("cases", 0, "seconds"), {"pytorch": "1 s"}, "float", "$.cases[0].seconds[...]"),
    (("cases", 0, "status"), "lost", "Invalid enum value 'lost'", "$.cases[0].status"),
    (("cases", 0, "outputs", 0, "envelope"), [[1.0, 2.0, 3.0]], "length 2", "$.cases[0].outputs[0].envelope[0]"),
    (("cases",), {}, "array", "$.cases"),
    (("findings", 0, "severity"), "grave", "Invalid enum value 'grave'", "$.findings[0].severity"),
    (("findings", 0, "evidence", "case_count"), "x", "int", "$[0].case_count"),
    (("findings", 0, "evidence", "worst"), [{"index": 3}], "array", "$[0].worst[0].index"),
    (("findings", 0, "evidence", "counterexample"), {"file": 3}, "str", "$[0].counterexample.file"),
    (("policy", "tolerance", "atol"), "small", "float", "$.policy.tolerance.atol"),
    (("latency", "runs", 0, "samples"), 700, "array", "$.latency.runs[0].samples"),
    (("quality", "candidate", "accuracy"), [1], "number | null", "$.quality.candidate[...]"),
    (("timing", "seconds"), "12", "float | null", "$.timing.seconds"),
]


@pytest.mark.parametrize(("path", "value", "expected", "place"), WRONG, ids=[place for *_, place in WRONG])
def test_a_wrong_type_names_the_file_the_field_and_what_was_expected(path, value, expected, place, text, tmp_path):
    (tmp_path / "p.json").write_text(changed(text, path, value))
    with pytest.raises(UserError) as error:
        Proof.load(tmp_path / "p.json")
    for part in (str(tmp_path / "p.json"), expected, place):
        assert part in str(error.value)


NOT_PROOFS = {
    "nothing": b"",
    "half of one": b'{"schema": "onnxproof/1", "subject": {',
    "bytes": b"\xff\xfe\x00",
    "a list": b"[]",
    "a number": b"3",
    "another schema": b'{"schema": "sarif/2"}',
    "no schema": b"{}",
    "only a schema": b'{"schema": "onnxproof/1"}',
    "a huge number": b'{"schema": "onnxproof/1", "timing": {"seconds": 1e999}}',
    "NaN": b'{"schema": "onnxproof/1", "timing": {"seconds": NaN}}',
    "a deep nest": b'{"schema": "onnxproof/1", "findings": ' + b"[" * 200_000,
    "a deep and whole nest": b'{"schema": "onnxproof/1", "findings": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}


@pytest.mark.parametrize("body", NOT_PROOFS.values(), ids=list(NOT_PROOFS))
def test_what_is_no_proof_is_said_to_be_none(body, tmp_path):
    (tmp_path / "p.json").write_bytes(body)
    with pytest.raises(UserError, match=r"p\.json is not"):
        Proof.load(tmp_path / "p.json")


def test_a_number_that_nothing_counts_to_is_told(text):
    with pytest.raises(UserError, match=r"out of range - at `\$\.artifact\.bytes`"):
        Proof.loads(changed(text, ("artifact", "bytes"), 10**400))
    with pytest.raises(UserError, match=r"out of range - at `\$\.findings\[0\]\.evidence\.max_abs`"):
        Proof.loads(changed(text, ("findings", 0, "evidence", "max_abs"), -(10**30)))
    assert Proof.loads(changed(text, ("artifact", "bytes"), 2**64 - 1)).artifact.bytes == 2**64 - 1


def test_a_deep_nest_in_open_evidence_is_no_trouble(text):
    nest = 3
    for _ in range(200):
        nest = {"a": [nest]}
    finding = Proof.loads(changed(text, ("findings", 0, "evidence"), {"nest": nest})).findings[0]
    assert finding.evidence["nest"]["a"][0]["a"]


def test_the_command_line_ends_with_the_sentence_and_no_traceback(cli, text, tmp_path):
    (tmp_path / "p.json").write_text(changed(text, ("cases", 0, "name"), {}))
    result = cli("report", "p.json")
    assert result.returncode == 2
    assert "$.cases[0].name" in result.stderr
    assert "Traceback" not in result.stderr
    assert cli("report", "none.json").returncode == 2


def test_the_worst_finding_that_is_not_excused_decides():
    assert make_proof(cases=2).verdict == "ship"
    block, review = found("OX201", "m"), found("OX202", "m")
    assert decide_verdict([review, block]) == "block"
    assert decide_verdict([review, block.accept("known to the team")]) == "review"
    assert decide_verdict([block.know("the baseline has it")]) == "ship"


def test_a_proof_of_another_schema_is_refused_and_a_further_field_is_not(text):
    with pytest.raises(
        UserError, match=r"p\.json is a proof with schema 'onnxproof/9', and this version reads 'onnxproof/1'"
    ):
        Proof.loads(changed(text, ("schema",), "onnxproof/9"), "p.json")
    assert Proof.loads(changed(text, ("colour",), "red")) == Proof.loads(text)
