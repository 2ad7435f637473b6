"""Proof → GitHub Actions: annotations on the user's source lines, and the job's summary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from onnxproof.errors import show_line
from onnxproof.findings import Finding
from onnxproof.policy.merging import group_by
from onnxproof.proof.proof import Proof
from onnxproof.report.markdown import render_markdown
from onnxproof.report.wording import list_details, name_subject, show_mark

COMMANDS = {"block": "error", "review": "warning", "note": "notice"}
# GitHub shows ten of each kind for a step.
SHOWN = 10


def render_annotations(proof: Proof, root: Path | None = None) -> str:
    """One workflow command a line; files below the repository's `root` are named relative to it."""
    findings = sorted(proof.findings, key=lambda f: not f.weight)
    kinds = group_by(findings, lambda f: COMMANDS[f.severity] if f.weight else "notice")
    return "\n".join(_write_annotation(kind, f, proof, root) for kind, some in kinds.items() for f in some[:SHOWN])


def _write_annotation(kind: str, finding: Finding, proof: Proof, root: Path | None) -> str:
    title = f"{finding.code} {finding.entry.title} ({name_subject(proof)})"
    properties = {**_find_source(finding, proof, root), "title": title}
    given = ",".join(f"{name}={escape_property(show_line(value))}" for name, value in properties.items())
    lines = map(show_line, [f"{finding.message}{show_mark(finding)}", *list_details(finding)])
    return f"::{kind} {given}::{escape_data(chr(10).join(lines))}"


def _find_source(finding: Finding, proof: Proof, root: Path | None) -> dict[str, str]:
    """The user's line; without one, the file of TARGET."""
    if finding.where.file:
        line = {"line": str(finding.where.line)} if finding.where.line else {}
        return {"file": _make_relative(finding.where.file, root), **line}
    file, colon, _ = (proof.subject.target or "").rpartition(":")
    return {"file": _make_relative(file, root)} if colon and file.endswith(".py") else {}


def _make_relative(file: str, root: Path | None) -> str:
    path = Path(file)
    if root is not None and path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix()


def escape_data(text: str) -> str:
    """A command's message: what would end the line is written in percent."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A command's property: what would end it is written in percent too."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def write_summary(proof: Proof, environment: Mapping[str, str] = os.environ) -> bool:
    """Append to the job's summary, where there is one."""
    file = environment.get("GITHUB_STEP_SUMMARY")
    if not file:
        return False
    with Path(file).open("a", encoding="utf-8") as stream:
        stream.write(render_markdown(proof) + "\n")
    return True
