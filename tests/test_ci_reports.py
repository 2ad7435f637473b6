"""The reports that a pipeline reads, from the command line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import xmlschema

from conftest import target
from onnxproof.cli import ending
from proofs import full_proof


@pytest.fixture(scope="module")
def junit_schema():
    return xmlschema.XMLSchema(str(Path(__file__).parent / "junit.xsd"))


@pytest.fixture
def saved(tmp_path):
    file = tmp_path / "proof.json"
    full_proof().save(file)
    return file


def test_report_writes_every_format(saved, cli, tmp_path, junit_schema):
    summary = tmp_path / "summary.md"
    result = cli(
        *("report", saved, "--html", "r/page.html", "--junit", "r/junit.xml", "--markdown", "r/comment.md", "--github"),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert result.returncode == 1, result.stderr
    assert (tmp_path / "r" / "page.html").read_text().startswith("<!doctype html>")
    junit_schema.validate(str(tmp_path / "r" / "junit.xml"))
    assert (tmp_path / "r" / "comment.md").read_text() == summary.read_text().removesuffix("\n")
    assert result.stdout.startswith("BLOCK")
    assert "\n::error file=model.py,line=42,title=OX201" in result.stdout
    assert "html: r/page.html" in result.stderr


def test_with_the_proof_on_stdout_annotations_go_to_stderr(saved, cli):
    import json

    result = cli("report", saved, "--json", "-", "--github")
    assert json.loads(result.stdout)["verdict"] == "block"
    assert "::error" in result.stderr


def test_a_folder_is_no_file(saved, cli, tmp_path):
    result = cli("prove", target("tutorial"), "--html", ".")
    assert result.returncode == 2
    assert "--html . is a folder" in result.stderr
    assert not (tmp_path / "onnxproof-out").exists()


def test_prove_writes_the_page_by_default_and_verify_does_not(here, tmp_path):
    result = here("prove", target("tutorial"), "--batch-sizes", "1,2", "--out", "made")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "made" / "report.html").read_text()
    assert "onnxproof prove" in page
    assert "--batch-sizes 1,2" in page
    assert "html: made/report.html" in result.stderr
    quiet = here(
        "verify", target("tutorial"), "--onnx", "made/model.onnx", "--batch-sizes", "1", "--out", "again", "-q"
    )
    assert quiet.exit_code == 0
    assert not (tmp_path / "again" / "report.html").exists()


def test_a_page_that_nobody_asked_for_does_not_cost_the_verdict(here, tmp_path, monkeypatch):
    monkeypatch.setattr("onnxproof.report.html._read_resource", lambda name: 1 / 0)
    silent = here("prove", target("tutorial"), "--batch-sizes", "1", "--out", "made")
    assert silent.exit_code == 0
    assert "could not be made" in silent.stderr
    asked = here("report", "made/proof.json", "--html", "page.html")
    assert isinstance(asked.exception, ZeroDivisionError)


def test_without_the_extra_prove_is_silent_and_html_is_an_error(saved, here, tmp_path, monkeypatch):
    from onnxproof.errors import UserError

    monkeypatch.setattr("onnxproof.report.extras.find_spec", lambda name: None)
    asked = here("report", saved, "--html", "page.html")
    assert isinstance(asked.exception, UserError)
    assert "pip install 'onnxproof[report]'" in str(asked.exception)
    silent = here("prove", target("tutorial"), "--batch-sizes", "1", "--out", "made")
    assert silent.exit_code == 0, silent.stderr
    assert "html" not in silent.stderr
    assert not (tmp_path / "made" / "report.html").exists()


@pytest.mark.parametrize(("verb", "page"), [("prove", True), ("quantize", True), ("verify", False)])
def test_verbs_that_choose_something_show_it_on_a_page(verb, page, tmp_path):
    asked = SimpleNamespace(verb=verb, out=str(tmp_path))
    assert ending._choose_page(asked) == (str(tmp_path / "report.html") if page else None)
