"""The table of runtimes."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.findings import Where, found
from onnxproof.proof.runtimes import RuntimeResult
from onnxproof.report.html import render_html
from onnxproof.report.runtimes import tell_lines
from onnxproof.report.text import render
from proofs import make_proof

PARTS = found("OX201", "they part", where=Where(node="node_7", module="head", file="model.py", line=12))


def results(count: int = 35, bad: int = 9) -> tuple[RuntimeResult, ...]:
    """So many releases, the first ones bad."""
    return tuple(
        RuntimeResult(f"onnxruntime==1.{n}.0", f"1.{n}.0", True, (PARTS,) * (n < bad), 0.5 + n, 0.1 * n)
        for n in range(count)
    )


def test_neighbours_share_a_line_and_the_change_has_its_place():
    assert tell_lines(results()) == [
        "",
        "  runtime                   verdict  worst noise ratio  p50 ms",
        "  onnxruntime 1.0.0–1.8.0   BLOCK    0.5–8.5            0–0.8    OX201 they part",
        "  onnxruntime 1.9.0–1.34.0  SHIP     9.5–34.5           0.9–3.4",
        "  changed between 1.8.0 (BLOCK) and 1.9.0 (SHIP) (node node_7, module head, model.py:12)",
        "  ships on: onnxruntime 1.9.0–1.34.0. Times are the median of a few runs, as busy as the machine was",
    ]
    assert tell_lines(()) == []
    assert "none of them" in tell_lines(results(3))[-1]


def test_a_summary_with_runtimes_has_no_more_than_thirty_lines():
    text = render(replace(make_proof(), runtimes=results()))
    assert "onnxruntime 1.9.0–1.34.0" in text
    assert len(text.splitlines()) <= 30


def test_the_page_has_the_table():
    page = render_html(replace(make_proof(), runtimes=results()))
    assert 'id="runtimes"' in page
    assert "onnxruntime 1.9.0–1.34.0" in page
    assert 'id="runtimes"' not in render_html(make_proof())
