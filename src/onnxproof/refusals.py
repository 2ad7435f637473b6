"""What onnxruntime refuses and PyTorch answers: one finding per reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.verified import CaseResult

FIXED = re.compile(r"Got invalid dimensions for input: (\S+).*?index: (\d+) Got: (\d+) Expected: (\d+)", re.S)


def refusals(results: Sequence[CaseResult]) -> list[Finding]:
    """Findings about the cases that only onnxruntime refused."""
    groups: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        if result.status == "failed":
            match = FIXED.search(result.message)
            key = (
                ("fixed", match.group(1), match.group(2), match.group(4))
                if match
                else ("refused", _reason(result.message))
            )
            groups.setdefault(key, []).append(result)
    return [_refusal(key, group) for key, group in groups.items()]


def _reason(message: str) -> str:
    line = message.splitlines()[0] if message else "no message"
    return re.sub(r"\d+", "#", line)[:200]


def _refusal(key: tuple[str, ...], group: Sequence[CaseResult]) -> Finding:
    where = Where(case=group[0].name)
    evidence = {"cases": [r.name for r in group], "error": group[0].message[:500]}
    severity: Severity | None = None if any(r.fair for r in group) else "note"
    if key[0] == "fixed":
        _, name, dim, size = key
        message = (
            f"the artifact fixes dimension {dim} of {name} to {size}: onnxruntime refuses {len(group)} cases of other sizes "
            "that PyTorch answers"
        )
        return found("OX222", message, where=where, evidence=evidence, severity=severity)
    first = group[0].message.splitlines()[0] if group[0].message else ""
    message = f"onnxruntime refuses {len(group)} cases that PyTorch answers: {first[:300]}"
    return found("OX221", message, where=where, evidence=evidence, severity=severity)
