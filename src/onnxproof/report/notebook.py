"""Proof → a small piece of HTML for a notebook: verdict, numbers, findings. No script, no request, no dependency."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from onnxproof.findings import Finding
from onnxproof.proof.proof import Proof
from onnxproof.report.groups import Group, group_cases
from onnxproof.report.wording import (
    name_standing,
    name_subject,
    name_verdict,
    shorten,
    show_cell,
    tell_place,
    tell_reason,
)

COLORS = {"ship": "#1a7f37", "review": "#9a6700", "block": "#cf222e"}
SHOWN = 8
CELL = 'style="text-align:left;padding:2px 12px 2px 0"'


def render_notebook(proof: Proof) -> str:
    """A fragment that inherits the notebook's own colors, so that it is readable in its light and dark themes."""
    # The verdict's color is a background under white text: that reads the same on a light and on a dark page.
    badge = f"background:{COLORS[proof.verdict]};color:#fff;padding:2px 10px;border-radius:4px;font-weight:700"
    text = shorten(tell_reason(proof).removeprefix(": "), 300)
    parts = [
        '<div style="font-family:system-ui,sans-serif;line-height:1.5">',
        f'<p><span style="{badge}">{escape(name_verdict(proof))}</span> <b>{escape(name_subject(proof))}</b> {escape(text)}</p>',
        _render_table(group_cases(proof)),
        *[_render_finding(finding) for finding in proof.findings[:SHOWN]],
    ]
    if len(proof.findings) > SHOWN:
        parts.append(f"<p>… and {len(proof.findings) - SHOWN} more findings</p>")
    return "\n".join([*parts, "</div>"])


def _render_table(rows: list[Group]) -> str:
    if not rows:
        return ""
    names = ("cases", "count", "max abs", "max rel", "noise ratio", "verdict")
    body = [(g.sizes, g.cases, g.max_abs, g.max_rel, g.noise_ratio, g.state) for g in rows[:12]]
    more = f"<caption {CELL}>the worst 12 of {len(rows)} sizes</caption>" if len(rows) > 12 else ""
    return f"<table>{more}<thead>{_render_row('th', names)}</thead><tbody>{''.join(_render_row('td', g) for g in body)}</tbody></table>"


def _render_row(tag: str, values: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag} {CELL}>{escape(show_cell(value))}</{tag}>' for value in values)}</tr>"


def _render_finding(finding: Finding) -> str:
    title = f"<b>{escape(finding.code)}</b> {escape(name_standing(finding))}: {escape(shorten(finding.message, 300))}"
    where = tell_place(finding)
    detail = f"<br>where: {escape(where)}" if where else ""
    return f"<details><summary>{title}</summary><p>help: {escape(finding.help)}{detail}</p></details>"
