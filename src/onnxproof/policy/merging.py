"""Many remarks about outputs in cases → one finding for each code and output."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from onnxproof.findings import Finding, look_up

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Remark:
    """One finding about one output in one case, before findings about the same thing are merged."""

    finding: Finding
    weight: float


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by their key, in the order in which the keys come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def merge_findings(remarks: Iterable[Remark]) -> list[Finding]:
    """The worst case speaks and the others are counted; what is said better by another code is not said."""
    groups = group_by(remarks, lambda remark: (remark.finding.code, remark.finding.where.output))
    return [
        _choose_speaker(group)
        for (code, output), group in groups.items()
        if not any((better, output) in groups for better in look_up(code).gives_way_to)
    ]


def _choose_speaker(group: Sequence[Remark]) -> Finding:
    worst = max(group, key=lambda remark: (remark.finding.weight, remark.weight)).finding
    cases = list(dict.fromkeys(str(remark.finding.where.case) for remark in group))
    return replace(worst, evidence={**worst.evidence, "cases": cases, "case_count": len(cases)})
