"""The catalogue of findings: what each code means, why it matters, how to fix it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxproof.findings import data, export, graph, latency, parity, quality, run
from onnxproof.findings.finding import Entry, Finding, Severity, Stage, Where

FAMILIES = (run, export, parity, graph, latency, quality, data)
ENTRIES = [entry for family in FAMILIES for entry in family.ENTRIES]
CATALOGUE: dict[str, Entry] = {entry.code: entry for entry in ENTRIES}
assert len(CATALOGUE) == len(ENTRIES), "a code has two entries"
JUDGED = parity.JUDGED | latency.JUDGED | quality.JUDGED | data.JUDGED
"""Codes that a policy derives from facts: judged again, they are derived again."""

__all__ = ["CATALOGUE", "JUDGED", "Entry", "Finding", "Severity", "Stage", "Where", "found"]


def found(
    code: str,
    message: str,
    *,
    where: Where | None = None,
    severity: Severity | None = None,
    stage: Stage | None = None,
    evidence: Mapping[str, Any] | None = None,
    help: str | None = None,
) -> Finding:
    """A finding of the catalogue; what is not given comes from its entry."""
    entry = CATALOGUE[code]
    return Finding(
        code=code,
        severity=severity or entry.severity,
        message=message,
        where=where or Where(),
        stage=stage or entry.stage,
        evidence=dict(evidence or {}),
        help=help if help is not None else entry.fix,
    )
