"""Words that all reports share: the baseline has its own name in each of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from onnxproof.findings import found
from onnxproof.proof.case_result import CaseResult
from onnxproof.report.github import render_annotations
from onnxproof.report.html import render_html
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import render_markdown
from onnxproof.report.notebook import render_notebook
from onnxproof.report.text import render
from onnxproof.report.wording import list_worst_elements, show_number, tell_headline
from proofs import full_proof, make_proof

RENDERS = (render, render_markdown, render_junit, render_annotations, render_notebook)


@pytest.fixture(scope="module")
def diff():
    """Two files, with wrong outputs, refusals, rejections, times and quality."""
    proof = full_proof(observed=())
    more = tuple(
        CaseResult(status, "normal", True, status, message="no", sizes={"batch": 1})
        for status in ("failed", "rejected")
    )
    subject = replace(proof.subject, target="models/before.onnx")
    made = replace(proof, subject=subject, cases=(*proof.cases, *more))
    return made.judged(made.policy)


@pytest.mark.parametrize("show", RENDERS, ids=lambda show: show.__name__)
def test_where_two_files_are_compared_none_is_called_pytorch(show, diff):
    shown = show(diff)
    assert "before.onnx" in shown
    assert "PyTorch" not in shown


def test_the_page_too_but_for_what_it_says_about_codes(diff):
    page = render_html(diff)
    assert "before.onnx" in page
    assert "|before.onnx|" in page
    assert "|PyTorch|" not in page


def test_a_module_is_called_pytorch():
    assert "PyTorch's own rounding error" in render(make_proof(wrong=1))


def test_findings_are_worded_when_they_are_made(diff):
    said = " ".join(f"{finding.message} {finding.help}" for finding in diff.findings)
    assert "before.onnx" in said
    assert "PyTorch" not in said
    assert "PyTorch" not in found("OX004", "").help + found("OX007", "").help + found("OX225", "").help


def test_numbers_are_short_and_say_what_is_not_there():
    assert [
        show_number(x) for x in (None, math.nan, 1e300, 0.0, 1234.0, 2e-7, 0.5)
    ] == "– – ∞ 0 1,230 2.0e-07 0.5".split()


def test_worst_elements_have_both_values():
    element = {"index": [2, 5], "baseline": 0.5, "candidate": 0.25}
    finding = found("OX201", "apart", evidence={"worst": [element, {**element, "baseline": "nan"}]})
    first, second = list_worst_elements(finding, "before.onnx")
    assert first == "(2, 5): before.onnx 0.5  onnxruntime 0.25  difference -0.25"
    assert "difference" not in second
    assert list_worst_elements(found("OX201", "apart"), "PyTorch") == []


def test_the_first_line_tells_of_many_cases_that_the_module_rejects():
    proof = make_proof()
    refused = [replace(case, status="rejected", outputs=()) for case in proof.cases]
    few, many = (replace(proof, cases=(*refused[:n], *proof.cases[n:])) for n in (1, len(refused) // 2))
    assert "rejected" not in tell_headline(few)
    assert f"({len(refused) // 2} rejected by PyTorch), every difference is rounding" in tell_headline(many)
