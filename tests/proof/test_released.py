"""Proofs that version 0.1.0 wrote are read, judged and shown as they were."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from onnxproof.policy.judgement import judge_proof
from onnxproof.proof.proof import Proof
from onnxproof.proof.released import upgrade
from onnxproof.proof.schema import read_schema
from onnxproof.report.frame import to_frame
from onnxproof.report.github import render_annotations
from onnxproof.report.html import render_html
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import render_markdown
from onnxproof.report.notebook import render_notebook
from onnxproof.report.text import list_culprits, render, render_lint
from onnxproof.report.wording import WORDS

FILES = sorted((Path(__file__).parent / "released").glob("*.json"))
released = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def test_every_kind_of_run_is_there():
    assert {file.stem for file in FILES} == {"ship", "block", "bench", "evaluate", "heal", "lint", "diff"}


@released
def test_nothing_is_lost(file):
    written, again = json.loads(file.read_text()), json.loads(Proof.load(file).dumps())
    assert _lost(written, again) == []


def _lost(old, new, path="$"):
    """Paths at which what was written is not written again."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [at for key, value in old.items() for at in _lost(value, new.get(key, "nothing"), f"{path}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [at for i, pair in enumerate(zip(old, new, strict=True)) for at in _lost(*pair, f"{path}[{i}]")]
    return [] if old == new else [path]


@released
def test_the_verdict_is_the_same_also_when_it_is_judged_again(file):
    proof, verdict = Proof.load(file), json.loads(file.read_text())["verdict"]
    assert proof.verdict == verdict
    again = judge_proof(proof, proof.policy)
    assert again.verdict == verdict
    assert {f.code for f in again.findings} == {f.code for f in proof.findings}


@released
def test_the_schema_of_today_holds_for_it(file):
    """A field that was not there then belongs into its record's `ADDED`."""
    jsonschema.validate(json.loads(file.read_text()), read_schema())
    jsonschema.validate(json.loads(Proof.load(file).dumps()), read_schema())


@released
def test_every_report_shows_it(file):
    proof = Proof.load(file)
    word = WORDS[proof.verdict]
    assert render(proof).startswith((word, "EXPORTED"))
    assert len(list_culprits(proof).splitlines()) <= 20
    assert proof.verdict in render_html(proof)
    ElementTree.fromstring(render_junit(proof))
    assert f"{word}: " in render_markdown(proof) or "EXPORTED" in render_markdown(proof)
    assert render_annotations(proof).count("::") >= 2 * len(proof.findings[:10])
    assert "<div" in render_notebook(proof)
    assert render_lint(proof)
    assert len(to_frame(proof)) >= len(proof.cases)


def test_sizes_are_read_from_the_names_of_cases():
    proof = Proof.load(FILES[[file.stem for file in FILES].index("ship")])
    assert {case.group for case in proof.cases} >= {"batch=1", "data"}
    assert {case.group for case in proof.cases if case.sizes} == {
        case.name.split("/")[0] for case in proof.cases if case.profile != "data"
    }


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("batch=7,seq=16/normal/seed=0", {"batch": 7, "seq": 16}),
        ("static/normal/seed=0", {}),
        ("data/rows=0-11", {}),
        ("kept/model-OX205-output", {}),
        ("batch=8/timed-data/rows=0-7", {"batch": 8}),
    ],
)
def test_names_of_every_kind(name, sizes):
    assert upgrade({"cases": [{"name": name}]})["cases"] == [{"name": name, "sizes": sizes}]


def test_what_has_another_form_is_left_to_the_reader():
    assert upgrade({"cases": [3, {"name": 4}], "subject": 5}) == {"cases": [3, {"name": 4}], "subject": 5}
    assert upgrade({"cases": "none"})["cases"] == "none"
