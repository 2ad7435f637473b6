"""Cases by their sizes: the table that every summary shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxproof.proof import Proof
from onnxproof.report.points import Judged, judged, sizes_of, top


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


def groups(proof: Proof, rows: Sequence[Judged] | None = None) -> list[Group]:
    """One group per size, the worst first where there are more than a dozen."""
    found: dict[str, list[Judged]] = {}
    for one in rows if rows is not None else judged(proof):
        found.setdefault(sizes_of(one.case), []).append(one)
    if len(found) > 12:
        found = dict(sorted(found.items(), key=lambda item: min(one.weight for one in item[1])))
    return [_group(sizes, members) for sizes, members in found.items()]


def _group(sizes: str, members: Sequence[Judged]) -> Group:
    numbers = [one.comparison for one in members if one.comparison is not None and one.case.fair]
    cases = {one.case.name: one.case for one in members}
    return Group(
        sizes,
        len(cases),
        top(c.max_abs for c in numbers),
        top(c.max_rel for c in numbers),
        top(c.noise_ratio for c in numbers),
        top(c.exactness.error for c in numbers if c.exactness is not None),
        min(members, key=lambda one: one.weight).state,
        sum(1 for case in cases.values() if case.status == "failed"),
        sum(1 for case in cases.values() if case.status == "rejected"),
    )
