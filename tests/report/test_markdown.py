"""Markdown: a comment in which names stay text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from onnxproof.report.github import render_annotations
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import LIMIT, escape_code, escape_text, render_markdown
from proofs import full_proof, make_proof

NASTY = "a|b <img src=x onerror=alert(1)> `c` @someone\x00\x1b[31m\n- d ::error::"


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
    html = markdown_it.MarkdownIt("commonmark").enable("table").render(f"{escape_text(value)}\n\n{escape_code(value)}")
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
