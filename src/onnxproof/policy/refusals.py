"""What onnxruntime refuses and PyTorch answers: one finding per reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnxproof.diagnosis import recognise
from onnxproof.diagnosis.runtime import RUNNING
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.proof.case_result import CaseResult

NEVER = (
    "It fails at every size, the example's own too: the exporter translates the named line wrongly, or onnxruntime has not all of the operator. "
    "`--heal` tries the other exporter and other settings; otherwise write the line in other operators."
)
ANOTHER = (
    "The file takes another size there than the example has, and no case fits: it is the file of another model or of another example, or its "
    "inputs come in another order. Give the module that was exported and an example of the file's size, or export with that dimension dynamic."
)
FIXED = re.compile(r"Got invalid dimensions for input: (\S+).*?index: (\d+) Got: (\d+) Expected: (\d+)", re.S)


def refusals(results: Sequence[CaseResult]) -> list[Finding]:
    """Findings about the cases that only onnxruntime refused."""
    groups: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        if result.status == "failed":
            groups.setdefault(_reason(result.message), []).append(result)
    answered = any(result.status == "compared" for result in results)
    return [_refusal(group, answered) for group in groups.values()]


def _reason(message: str) -> tuple[str, ...]:
    """What cases refused for the same reason have in common."""
    fixed = FIXED.search(message)
    if fixed:
        return (fixed.group(1), fixed.group(2), fixed.group(4))
    return (re.sub(r"\d+", "#", message.splitlines()[0] if message else "")[:200],)


def _refusal(group: Sequence[CaseResult], answered: bool) -> Finding:
    first = group[0]
    where = Where(**{**first.where, "case": first.name})
    evidence = {"cases": [r.name for r in group], "error": first.message[:500]}
    severity: Severity | None = None if any(r.fair for r in group) else "note"
    fixed = FIXED.search(first.message)
    if fixed:
        name, dim, _, size = fixed.groups()
        message = (
            f"the artifact fixes dimension {dim} of {name} to {size}: onnxruntime refuses {len(group)} cases of other sizes "
            "that PyTorch answers"
        )
        help = None if answered else ANOTHER
        return found("OX222", message, where=where, evidence=evidence, severity=severity, help=help)
    known = recognise(first.message, RUNNING)
    line = first.message.splitlines()[0] if first.message else ""
    # In a case of ours names, dtypes and memory are in order: only what the node itself says is told apart.
    code = known.code if known is not None and known.code in ("OX223", "OX225") else "OX221"
    message = f"onnxruntime refuses {len(group)} cases that PyTorch answers: {line[:300]}"
    help = NEVER if code == "OX223" and not answered else None
    return found(code, message, where=where, evidence=evidence, severity=severity, help=help)
