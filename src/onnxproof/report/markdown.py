"""Proof → Markdown for a pull-request comment or a job summary: what comes from the model stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from onnxproof.errors import show_line
from onnxproof.findings import Finding
from onnxproof.proof.proof import Proof
from onnxproof.report import wording
from onnxproof.report.groups import group_cases
from onnxproof.report.points import read_measured

SIGNS = {"ship": "🟢", "review": "🟡", "block": "🔴"}
SHOWN_GROUPS = 12
SHOWN_FINDINGS = 10
# Characters; GitHub takes 65,536 in a comment.
LIMIT = 60_000


def render_markdown(proof: Proof) -> str:
    """The comment."""
    parts = [
        f"### {SIGNS[proof.verdict]} {wording.name_verdict(proof)}: {escape_text(wording.name_subject(proof))}",
        escape_text(wording.shorten(wording.tell_reason(proof).removeprefix(": "), 400)),
        *_render_groups(proof),
        *_render_latency(proof),
        *_render_quality(proof),
        *_render_findings(proof),
        *_render_environment(proof),
    ]
    whole = "\n\n".join(part for part in parts if part) + "\n"
    return whole if len(whole) <= LIMIT else whole[:LIMIT].rsplit("\n\n", 1)[0] + "\n\n… the rest is in the proof.\n"


PLAIN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", **{c: f"\\{c}" for c in "\\`*_[]|~#!$"}})
CODE = str.maketrans({c: f"&#{ord(c)};" for c in "&<>`|\\*_[]~@#!$:"})


def escape_text(value: str) -> str:
    """One line that Markdown shows as it is: no markup, no HTML, no table border, no list, no mention, no link."""
    line = show_line(" ".join(value.split())).translate(PLAIN)
    line = re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", line)
    # GitHub looks for mentions and addresses in what is shown: a character of no width breaks them.
    return line.replace("@", "@\u200b").replace("://", ":\u200b//").replace("www.", "www\u200b.")


def escape_code(value: str) -> str:
    """A name in code. Entities are the one way to write a backtick or a table's border there."""
    line = show_line(" ".join(value.split())).translate(CODE)
    return f"<code>{line}</code>" if line else ""


def make_table(head: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    """A table of names in code and what is said about them, its head divided by commas; nothing without a row."""
    names = head.split(",")
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [
        f"| {' | '.join([escape_code(first), *map(wording.show_cell, rest)])} |" for first, *rest in rows[:SHOWN_GROUPS]
    ]
    return ["\n".join(lines)] * bool(rows)


def _render_groups(proof: Proof) -> list[str]:
    rows = [(g.sizes, g.cases, g.max_abs, g.max_rel, g.noise_ratio, g.state) for g in group_cases(proof)]
    more = [f"… and {len(rows) - SHOWN_GROUPS} more sizes"] if len(rows) > SHOWN_GROUPS else []
    return make_table("sizes,cases,max abs,max rel,noise ratio,verdict", rows) + more


def _render_latency(proof: Proof) -> list[str]:
    gains = {(one.contender, one.batch): wording.show_gain(one) for one in read_measured(proof).speedup}
    rows = [
        (r.contender, r.batch, r.p50_ms, r.p95_ms, gains.get((r.contender, r.batch))) for r in read_measured(proof).runs
    ]
    return make_table("contender,batch,p50 ms,p95 ms,speed-up", rows)


def _render_quality(proof: Proof) -> list[str]:
    if proof.quality is None:
        return []
    baseline, candidate = proof.quality.baseline, proof.quality.candidate
    names = dict.fromkeys([*baseline, *candidate])
    return make_table("metric,baseline,candidate", [(name, baseline.get(name), candidate.get(name)) for name in names])


def _render_findings(proof: Proof) -> list[str]:
    gating = wording.choose_grave(proof)
    parts = [_render_finding(proof, finding) for finding in gating[:SHOWN_FINDINGS]]
    if len(gating) > SHOWN_FINDINGS:
        parts.append(f"… and {len(gating) - SHOWN_FINDINGS} more in the proof")
    quiet = [f for f in proof.findings if not f.weight]
    if quiet:
        lines = [
            f"- {escape_code(f.code)} {wording.name_standing(f)}: {escape_text(wording.shorten(f.message, 200))}{_show_excuse(f)}"
            for f in quiet[:20]
        ]
        more = [f"- … and {len(quiet) - 20} more"] if len(quiet) > 20 else []
        inside = "\n".join(lines + more)
        parts.append(f"<details><summary>{len(quiet)} that do not gate</summary>\n\n{inside}\n\n</details>")
    return parts


def _show_excuse(finding: Finding) -> str:
    reason = finding.accepted or finding.known
    return f" ({escape_text(reason)})" if reason else ""


def _render_finding(proof: Proof, finding: Finding) -> str:
    lines = [f"**{finding.code} {finding.severity}** {escape_text(wording.shorten(finding.message, 500))}", ""]
    where = wording.tell_place(finding)
    if where:
        lines.append(f"- where: {escape_code(where)}")
    lines += [f"- {escape_code(line)}" for line in wording.list_worst_elements(finding, proof.counterpart)]
    one = finding.evidence.get("counterexample")
    if one:
        lines.append(f"- smallest input: {escape_code(str(one.get('text') or one.get('file')))}")
    return "\n".join([*lines, f"- help: {escape_text(finding.help)}"])


def _render_environment(proof: Proof) -> list[str]:
    versions = {"torch": proof.environment.torch, "onnxruntime": proof.environment.onnxruntime}
    known = [f"{name} {version}" for name, version in versions.items() if version]
    if proof.artifact is not None:
        known += [f"opset {proof.artifact.opset}", f"sha256 {proof.artifact.sha256[:12]}"]
    return [f"<sub>{escape_text(', '.join(known))}</sub>"] if known else []
