"""The commands that run nothing: a saved proof judged again, and what codes and messages mean."""

from __future__ import annotations

import io
import json

import pytest

from onnxproof.cli.reading import explain
from onnxproof.errors import UserError
from onnxproof.findings import CATALOGUE
from proofs import full_proof, make_proof

UNSUPPORTED = (
    "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Relu(14) node with name 'a'"
)


@pytest.fixture
def saved(tmp_path):
    make_proof(wrong=2).save(tmp_path / "proof.json")
    return "proof.json"


def verdict(inside, *words) -> str:
    told = inside("report", *words, "--json", "-")
    assert told.returncode in (0, 1), told.stderr
    return json.loads(told.stdout)["verdict"]


def test_a_proof_is_judged_under_what_is_given_and_else_under_its_own_policy(inside, saved):
    assert verdict(inside, saved) == "block"
    assert (
        verdict(inside, saved, "--atol", "1", "--max-abs", "1") == "review"
    )  # rounding explains it no better than before
    assert verdict(inside, saved, "--accept", "OX201", "--reason", "known") == "ship"


def test_what_the_baseline_had_does_not_count(inside, saved, tmp_path):
    assert verdict(inside, saved, "--baseline", saved) == "ship"
    make_proof(name="fixture").save(tmp_path / "good.json")
    assert verdict(inside, saved, "--baseline", "good.json") == "block"


def test_a_gate_on_what_was_not_measured_is_refused(inside, saved, tmp_path):
    told = inside("report", saved, "--min", "recall=0.5")
    assert told.returncode == 2
    assert "needs an evaluation" in told.stderr
    full_proof().save(tmp_path / "full.json")
    told = inside("report", "full.json", "--min", "colour=0.5")
    assert told.returncode == 2
    assert "no such metric was measured" in told.stderr


def test_a_code_is_explained_in_any_case_of_letters(capsys):
    explain("ox201")
    told = capsys.readouterr().out
    entry = CATALOGUE["OX201"]
    assert told.splitlines()[0] == "OX201: a wrong answer (block)"
    assert entry.what in told
    assert f"What to do: {entry.fix}" in told
    for unknown in ("OX999", None):
        with pytest.raises(UserError, match="there is no code"):
            explain(unknown)


def test_all_codes_are_listed_with_how_grave_they_are(inside):
    lines = inside("explain", "--all").stdout.splitlines()
    assert len({line.split()[0] for line in lines}) == len(lines) > 100
    assert {line.split()[1] for line in lines} == {"block", "review", "note"}


def test_a_message_is_recognised_from_a_file(inside, tmp_path):
    (tmp_path / "error.txt").write_text(UNSUPPORTED)
    told = inside("explain", "--error", "error.txt")
    assert told.stdout.startswith("OX308: ")
    assert "What to do: " in told.stdout
    (tmp_path / "error.txt").write_text("the cat is hungry")
    unknown = inside("explain", "--error", "error.txt")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "not in the catalogue" in unknown.stderr
    assert "there is no file none.txt" in inside("explain", "--error", "none.txt").stderr


def test_a_message_is_read_from_the_pipe(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(UNSUPPORTED))
    explain(error="-")
    assert capsys.readouterr().out.startswith("OX308: ")


def test_signs_that_an_output_lacks_are_escaped(cli):
    told = cli("explain", "OX607", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert told.returncode == 0
    assert "\\u" in told.stdout
    assert "bug in onnxproof" not in told.stderr
