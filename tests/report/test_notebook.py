"""A proof in a notebook: what it shows, draws and tabulates."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from onnxproof.report.plot import Plot
from proofs import full_proof, make_proof

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def proof():
    return full_proof()


def test_it_shows_verdict_table_and_findings(proof):
    html = proof._repr_html_()
    assert ">BLOCK</span>" in html
    assert "batch=3" in html
    assert "OX201" in html
    assert "<script" not in html


def test_names_stay_text():
    nasty = "<img src=x onerror=alert(1)>"
    html = make_proof(name=nasty, outputs=(nasty,), wrong=1)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_its_charts_are_at_hand(proof):
    assert isinstance(proof.plot, Plot)


def test_the_frame_has_a_row_for_each_output(proof):
    frame = make_proof(outputs=("a", "b"), wrong=1).to_frame()
    assert len(frame) == 48
    assert set(frame["output"]) == {"a", "b"}
    assert frame["max_abs"].max() > 0.01
    assert list(frame[frame.state == "block"].case.unique()) == ["batch=3/mixed/seed=0"]
    assert frame.iloc[0]["noise_ratio"] == pytest.approx(0.3, abs=0.3)


def test_the_frame_keeps_cases_without_outputs():
    proof = make_proof()
    failed = replace(proof.cases[0], status="failed", outputs=(), message="no kernel")
    frame = replace(proof, cases=(failed, *proof.cases[1:])).to_frame()
    assert frame.iloc[0]["message"] == "no kernel"
    assert len(frame) == 24


def test_a_proof_loads_no_chart_library_until_it_draws():
    code = "import sys, onnxproof.proof.proof; print([m for m in ('altair', 'jinja2', 'pandas', 'torch') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
