"""JUnit, GitHub and Markdown: what a pipeline reads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from conftest import target
from onnxproof.findings import Where, found
from onnxproof.report.github import escape_data, escape_property, render_annotations, write_summary
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import LIMIT, code, render_markdown, text
from proofs import full_proof, make_proof

HERE = Path(__file__).parent
NASTY = "a|b <img src=x onerror=alert(1)> `c` @someone\x00\x1b[31m\n- d ::error::"


@pytest.fixture(scope="module")
def junit_schema():
    return xmlschema.XMLSchema(str(HERE / "junit.xsd"))


def cases_of(xml: str) -> dict[tuple[str, str], ElementTree.Element]:
    return {(c.get("classname"), c.get("name")): c for c in ElementTree.fromstring(xml).iter("testcase")}


# --- JUnit ------------------------------------------------------------------------------------------------------------


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


# --- GitHub -----------------------------------------------------------------------------------------------------------


def test_annotations_point_at_the_users_line(tmp_path):
    proof = make_proof(wrong=1, nodes=5, file=str(tmp_path / "src" / "net,a.py"))
    [line] = [line for line in render_annotations(proof, tmp_path).splitlines() if line.startswith("::error")]
    assert line.startswith("::error file=src/net%2Ca.py,line=42,title=OX201 a wrong answer (fixture)::")
    assert "%0Ahelp%3A" not in line  # a message keeps its colons
    assert "%0Ahelp: " in line


def test_annotations_have_the_severity_of_their_finding():
    observed = (found("OX102", "train mode", severity="review"), found("OX005", "cases left out", severity="note"))
    proof = make_proof(wrong=1, observed=observed)
    kinds = [line.split(" ")[0] for line in render_annotations(proof).splitlines()]
    assert kinds == ["::error", "::warning", "::notice"]
    accepted = proof.judged(replace(proof.policy, accept={"OX201": "fine"}))
    assert [line.split(" ")[0] for line in render_annotations(accepted).splitlines()] == [
        "::warning",
        "::notice",
        "::notice",
    ]


def test_annotations_cannot_be_broken_out_of():
    nasty = "x\r\n::set-output name=a::b 100%0A, c: d"
    where = Where(output=nasty, file=nasty, line=3)
    proof = make_proof(name=nasty, observed=(found("OX201", nasty, where=where, help=nasty),))
    proof = replace(proof, findings=(found("OX201", nasty, where=where, help=nasty),))
    lines = render_annotations(proof).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(
        "::error file=x%0D%0A%3A%3Aset-output name=a%3A%3Ab 100%250A%2C c%3A d,line=3,title=OX201"
    )
    assert escape_data("%\r\n:,") == "%25%0D%0A:,"
    assert escape_property("%\r\n:,") == "%25%0D%0A%3A%2C"


def test_without_a_line_the_targets_file_is_named():
    proof = make_proof(observed=(found("OX102", "train mode", severity="review"),), file="models/net.py")
    assert render_annotations(proof).startswith("::warning file=models/net.py,title=OX102")


def test_only_ten_of_a_kind():
    outputs = tuple(f"o{i}" for i in range(30))
    assert len(render_annotations(make_proof(wrong=24, outputs=outputs)).splitlines()) == 10


def test_the_summary_is_appended(tmp_path):
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    assert write_summary(make_proof(), {"GITHUB_STEP_SUMMARY": str(file)})
    assert file.read_text().startswith("before\n### 🟢 SHIP: fixture")
    assert not write_summary(make_proof(), {})


# --- Markdown ---------------------------------------------------------------------------------------------------------


def test_markdown_tells_the_verdict_first_and_everything_that_gates():
    shown = render_markdown(full_proof())
    lines = shown.splitlines()
    assert lines[0] == "### 🔴 BLOCK: fixture"
    assert "| <code>batch=3</code> | 8 |" in shown
    assert "**OX201 block**" in shown
    assert "**OX102 review**" in shown
    assert "| <code>onnxruntime</code> | 8 |" in shown
    assert "| <code>accuracy</code> |" in shown


def test_markdown_keeps_names_as_text():
    markdown_it = pytest.importorskip("markdown_it")
    outputs = (
        NASTY,
        "[a](javascript:alert(1))",
        "![i](http://x/y.png)",
        "**bold** _it_",
        "x]|[y\\|z",
        "https://evil.example",
    )
    proof = full_proof(name=NASTY, outputs=outputs, node="<script>|`{}", file="<b>|`.py")
    shown = render_markdown(proof)
    html = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).enable(["table"]).render(shown)
    assert not re.search(r"<(?:img|script|b|em|a|strong)\b", html.replace("<strong>OX", ""))
    assert set(re.findall(r"<([a-z0-9]+)", html)) <= set(
        "h3 p table thead tbody tr th td code strong ul li details summary sub".split()
    )
    for row in re.findall(r"<tr>.*?</tr>", html, re.S):
        assert len(re.findall("<t[hd]", row)) in (3, 5, 6)
    assert "@someone" not in shown
    assert "https://evil" not in shown


@pytest.mark.parametrize(
    "value", ["- item", "+ item", "1. item", "1) item", "=== x", "# title", "> quote", "| a |", "~~~"]
)
def test_a_line_of_text_is_no_block(value):
    markdown_it = pytest.importorskip("markdown_it")
    html = markdown_it.MarkdownIt("commonmark").enable("table").render(f"{text(value)}\n\n{code(value)}")
    assert set(re.findall(r"<([a-z0-9]+)", html)) == {"p", "code"}


def test_markdown_fits_a_comment():
    outputs = tuple(f"output{'|`' * 500}{i}" for i in range(40))
    assert len(render_markdown(make_proof(cases=40, wrong=40, outputs=outputs))) <= LIMIT + 100


def test_where_two_files_are_compared_the_first_has_its_name():
    proof = make_proof(wrong=1)
    diff = replace(proof, subject=replace(proof.subject, target="before.onnx"))
    diff = diff.judged(diff.policy)
    for shown in (render_markdown(diff), render_annotations(diff), render_junit(diff), diff._repr_html_()):
        assert "before.onnx" in shown
        assert "PyTorch" not in shown


# --- the command line -------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr("onnxproof.report.html._resource", lambda name: 1 / 0)
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
