"""The same file on other runtimes → findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnxproof.findings import Finding, Severity, found
from onnxproof.proof.runtimes import RuntimeResult, group_results, name_group


def judge_runtimes(results: Sequence[RuntimeResult]) -> list[Finding]:
    """A finding for each group of runtimes on which the file does not ship; the first result is the proof's own and speaks for itself."""
    return [_tell(group) for group in group_results(results[1:]) if group[0].verdict != "ship"]


def _tell(group: Sequence[RuntimeResult]) -> Finding:
    worst = group[0].findings[0]
    severity: Severity = worst.severity if any(one.asked for one in group) else "note"
    message = f"on {name_group(group)}: {worst.message}"
    evidence = {"runtimes": [one.runtime for one in group], "code": worst.code}
    told = found("OX330", message, severity=severity, evidence=evidence)
    return replace(told, where=worst.where, stage=worst.stage, help=worst.help)
