"""GitHub: annotations on the user's lines, and the job's summary."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.findings import Where, found
from onnxproof.report.github import escape_data, escape_property, render_annotations, write_summary
from proofs import make_proof


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
        "::error file=x\\r\\n%3A%3Aset-output name=a%3A%3Ab 100%250A%2C c%3A d,line=3,title=OX201"
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
