"""What onnxruntime refuses and PyTorch answers: one finding per reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from onnxproof.diagnosis.failures import diagnose_running, find_refused_size
from onnxproof.errors import first_line
from onnxproof.findings import Finding, found
from onnxproof.policy.merging import group_by
from onnxproof.proof.case_result import CaseResult


def judge_refusals(results: Sequence[CaseResult], baseline: str = "PyTorch") -> list[Finding]:
    """Findings about the cases that only onnxruntime refused."""
    groups = group_by((one for one in results if one.status == "failed"), lambda one: _find_reason(one.message))
    answered = any(result.status == "compared" for result in results)
    return [_tell_refusal(group, answered, baseline, spread=_only_spreads(group, results)) for group in groups.values()]


def _only_spreads(group: Sequence[CaseResult], results: Sequence[CaseResult]) -> bool:
    """Whether the module takes another size than the file's only where it is 1, which broadcasting spreads.

    Such a dimension is none that callers vary: the module itself refuses all its other sizes.
    """

    def sizes(status: str, name: str) -> set[int]:
        return {one.sizes[name] for one in results if one.status == status and name in one.sizes}

    refused = [(name, size) for one in group for name, size in one.sizes.items()]
    return any(
        {size for other, size in refused if other == name} == {1}
        and len(sizes("compared", name)) == 1
        and bool(sizes("rejected", name) - {0, 1})
        for name, _ in refused
    )


def _find_reason(message: str) -> tuple[str, ...]:
    """What cases refused for the same reason have in common."""
    return find_refused_size(message) or (re.sub(r"\d+", "#", first_line(message, 1000))[:200],)


def _tell_refusal(group: Sequence[CaseResult], answered: bool, baseline: str, *, spread: bool) -> Finding:
    # One without a size of one speaks, where there is one: there the module's program can be held beside the graph, and the cause be found.
    first = min(group, key=lambda r: (not r.fair, sum(size < 2 for size in r.sizes.values())))
    weighs = any(r.fair for r in group) and not (spread and find_refused_size(first.message))
    finding = _explain_error(first.message, len(group), baseline)
    return replace(
        finding,
        severity=finding.severity if weighs else "note",
        where=replace(first.where, case=first.name),
        evidence={"cases": [r.name for r in group], "error": first.message[:500]},
        help=finding.help if answered else finding.entry.never or finding.help,
    )


def _explain_error(error: str, count: int, baseline: str) -> Finding:
    """What an error of onnxruntime's says that so many cases have in common."""
    fixed = find_refused_size(error)
    if fixed is not None:
        name, dim, size = fixed
        refused = f"onnxruntime refuses {count} cases of other sizes that {baseline} answers"
        return found("OX222", f"the artifact fixes dimension {dim} of {name} to {size}: {refused}")
    known = diagnose_running(error)
    # In a case of ours names, dtypes and memory are in order: only what the node itself says is told apart.
    message = f"onnxruntime refuses {count} cases that {baseline} answers: {first_line(error)}"
    return found(known.code if known is not None and known.entry.locatable else "OX221", message)
