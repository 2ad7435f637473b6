"""The catalogue of findings: what each code means, why it matters, how to fix it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxproof.findings import data, export, graph, parity, quality, run
from onnxproof.findings.parity import JUDGED as JUDGED_PARITY
from onnxproof.findings.record import Entry, Finding, Severity, Stage, Where

CATALOGUE: dict[str, Entry] = {
    entry.code: entry for family in (run, export, parity, graph, quality, data) for entry in family.ENTRIES
}

JUDGED = JUDGED_PARITY | quality.JUDGED | data.JUDGED
"""Codes that a policy gives: a saved proof is judged again without them."""

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
