"""Cases by their sizes: the table that every summary shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnxproof.policy.merging import group_by
from onnxproof.proof.proof import Proof
from onnxproof.report.points import Judged, find_top, list_judged


@dataclass(frozen=True)
class Group:
    """All cases of one size: the worst numbers of those that gate, and the worst word."""

    sizes: str
    cases: int
    max_abs: float | None
    max_rel: float | None
    noise_ratio: float | None
    exactness: float | None
    state: str
    refused: int
    rejected: int
    nonfinite: int
    """Comparisons in which one side is NaN or infinite and the other is not."""


def group_cases(proof: Proof, rows: Sequence[Judged] | None = None) -> list[Group]:
    """One group per size, in order of size; the worst first where there are more than a dozen."""
    found = group_by(rows if rows is not None else list_judged(proof), lambda one: one.case.group).items()
    if len(found) > 12:
        shown = sorted(found, key=lambda item: min(one.weight for one in item[1]))
    else:
        shown = sorted(found, key=lambda item: sort_naturally(item[0]))
    return [_summarise_group(sizes, members) for sizes, members in shown]


def sort_naturally(sizes: str) -> tuple[Any, ...]:
    """A key that puts `batch=7` before `batch=32`, and names without sizes last."""
    parts = re.split(r"(\d+)", sizes)
    return ("=" not in sizes, *(int(part) if i % 2 else part for i, part in enumerate(parts)))


def _summarise_group(sizes: str, members: Sequence[Judged]) -> Group:
    numbers = [one.comparison for one in members if one.comparison is not None and one.case.fair]
    cases = {one.case.name: one.case for one in members}
    return Group(
        sizes,
        len(cases),
        find_top(c.max_abs for c in numbers),
        find_top(c.max_rel for c in numbers),
        find_top(c.noise_ratio for c in numbers),
        find_top(c.exactness.error for c in numbers if c.exactness is not None),
        min(members, key=lambda one: one.weight).state,
        sum(1 for case in cases.values() if case.status == "failed"),
        sum(1 for case in cases.values() if case.status == "rejected"),
        sum(1 for c in numbers if c.pattern.differing),
    )
