"""Opinions about a chosen lower precision: what it costs, and whether anything tells what that means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from onnxproof.findings import Finding, Where, found
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.proof import Proof

# Decibels from which on a lower precision changes nothing that float32 would not.
ROUNDING = 110.0
# Share of decisions that a lower precision may change where no labels say what that costs.
CHANGED = 0.02
# Values that a model is made for; others show what the range of a precision is, not whether it fits.
ORDINARY = ("normal", "example", "data")


def judge_precision(proof: Proof) -> Iterable[Finding]:
    """What is to be said about a lower precision that was chosen."""
    precision = proof.artifact.precision if proof.artifact is not None else None
    if precision is None or not precision.declared:
        return
    measured = [
        (case, c) for case in proof.cases if case.profile in ORDINARY for c in case.outputs if c.cost is not None
    ]
    lost = [(case, c) for case, c in measured if c.cost is not None and c.cost.lost]
    if lost:
        yield _tell_overflow(*lost[0])
    costs = [c.cost for _, c in measured if c.cost is not None]
    if not costs or min(cost.decibels for cost in costs) >= ROUNDING:
        return
    yield _tell_cost(measured, precision.text)
    if proof.quality is None:
        yield from _judge_unmeasured([c for case, c in measured if case.profile == "data"], precision.kind)


def _judge_unmeasured(on_data: Sequence[Comparison], kind: str) -> Iterable[Finding]:
    """No labels say what the precision is worth: the share of decisions that it changes on the user's data has to do, if there are any."""
    rows = sum(c.cost.rows for c in on_data if c.cost is not None)
    if not rows:
        message = f"{kind}: computed right, but nothing tells what the precision costs on the task"
        yield found("OX228", message)
        return
    changed = sum(c.cost.changed for c in on_data if c.cost is not None)
    low, high = bound_share(changed, rows)
    told = f"{kind} changes {changed} of {rows} decisions on your data (95 %: {low:.2%} to {high:.2%})"
    evidence = {"changed": changed, "rows": rows, "low": low, "high": high, "limit": CHANGED}
    if low > CHANGED:
        yield found("OX228", f"{told}, more than {CHANGED:.0%}", severity="block", evidence=evidence)
    elif high > CHANGED:
        yield found(
            "OX228", f"{told}, which may be more than {CHANGED:.0%}: bring labels, or more rows", evidence=evidence
        )


def bound_share(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson). Without scipy: who proves need not have it."""
    tail = (1 - level) / 2
    low = _solve(lambda p: 1 - _cumulate(count - 1, of, p) < tail) if count else 0.0
    high = _solve(lambda p: _cumulate(count, of, p) > tail) if count < of else 1.0
    return low, high


def _solve(below: Callable[[float], bool]) -> float:
    """Where a share is no longer below."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _cumulate(most: int, of: int, p: float) -> float:
    """The probability of at most so many out of `of`."""
    chance = [math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1) for k in range(most + 1)]
    return math.fsum(math.exp(c + k * math.log(p) + (of - k) * math.log1p(-p)) for k, c in enumerate(chance))


def _tell_overflow(case: CaseResult, c: Comparison) -> Finding:
    assert c.cost is not None  # it was counted
    message = f"{c.output} is finite in the original and overflows in this precision: {c.cost.lost} elements"
    return found("OX230", message, where=Where(output=c.output, case=case.name), evidence={"lost": c.cost.lost})


def _tell_cost(measured: Sequence[tuple[CaseResult, Comparison]], precision: str) -> Finding:
    case, worst = min(measured, key=lambda one: one[1].cost.decibels if one[1].cost is not None else 0.0)
    assert worst.cost is not None  # it is the least of them
    rows = sum(c.cost.rows for _, c in measured if c.cost is not None)
    changed = sum(c.cost.changed for _, c in measured if c.cost is not None)
    told = f"; the largest score is another one in {changed} of {rows} rows" if rows else ""
    message = f"{precision}: {worst.output} keeps {worst.cost.decibels:.0f} dB of the original{told}"
    evidence = {"decibels": worst.cost.decibels, "changed": changed, "rows": rows}
    return found("OX227", message, where=Where(output=worst.output, case=case.name), evidence=evidence)
