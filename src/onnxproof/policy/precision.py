"""Opinions about a chosen lower precision: what it costs, and whether anything tells what that means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnxproof.findings import Finding, Where, found
from onnxproof.proof.case_result import ORDINARY, CaseResult
from onnxproof.proof.comparison import Comparison, PrecisionCost
from onnxproof.proof.proof import Proof
from onnxproof.request.thresholds import QualityPolicy

# Decibels of a node that makes infinities of right inputs.
OVERFLOW = -300.0
# The share of changed decisions from which on a file is another model. What is less is for labels to judge: the largest number of an output
# may be no decision at all, and many a decision is between equals.
SPOILED = 0.5
# Decibels from which on a lower precision changes nothing that float32 would not.
ROUNDING = 110.0


def judge_precision(proof: Proof, policy: QualityPolicy, *, right: bool = True) -> Iterable[Finding]:
    """What is to be said about a lower precision that was chosen; `right`: nothing speaks against the file itself."""
    precision = proof.chosen
    if precision is None:
        return
    seen = [(case, c) for case in proof.cases if case.profile in ORDINARY for c in case.outputs if c.cost is not None]
    # Ranges are made for data: where there are some, others say nothing about them.
    measured = [(case, c) for case, c in seen if case.profile == "data"] or seen
    lost = [(case, c) for case, c in measured if c.cost is not None and c.cost.lost]
    if lost:
        yield _tell_overflow(*lost[0], proof.findings)
    costs = [c.cost for _, c in measured if c.cost is not None]
    if not costs or min(cost.decibels for cost in costs) >= ROUNDING:
        return
    yield _tell_cost(measured, precision.text)
    if proof.quality is None:
        yield from _judge_unmeasured(proof, precision.kind, policy.max_changed, right)


def count_changed(proof: Proof) -> tuple[float, float, float] | None:
    """The share of decisions that a lower precision changes on the user's data, with its exact 95 % interval; None without any."""
    if proof.quality is not None:
        rate = proof.quality.flip_rate
        return None if rate is None else (rate.value, rate.low, rate.high)
    changed, rows = count_unlabelled(proof)
    if not rows:
        return None
    return changed / rows, *bound_share(changed, rows)


def _on_data(proof: Proof) -> list[PrecisionCost]:
    return [c.cost for case in proof.cases if case.profile == "data" for c in case.outputs if c.cost is not None]


def count_unlabelled(proof: Proof) -> tuple[int, int]:
    """Decisions on the user's data that are others, of how many."""
    costs = _on_data(proof)
    return sum(cost.changed for cost in costs), sum(cost.rows for cost in costs)


def _tell_kind(proof: Proof) -> str:
    """The kind of inputs that changes most, by what the original says of them."""
    changed, every = Counter[str](), Counter[str]()
    for cost in _on_data(proof):
        changed.update({one: counts[0] for one, counts in cost.kinds.items()})
        every.update({one: counts[1] for one, counts in cost.kinds.items()})
    if not changed:
        return ""
    one = max(changed, key=lambda name: changed[name])
    return f", most where the original says {one} ({changed[one]} of {every[one]} where any changed)"


def _judge_unmeasured(proof: Proof, kind: str, limit: float, right: bool) -> Iterable[Finding]:
    """No labels say what the precision is worth: the share of decisions that it changes on the user's data has to do, if there are any."""
    counted = count_changed(proof)
    if counted is None:
        computed = "computed right, but " * right
        yield found("OX228", f"{kind}: {computed}nothing tells what the precision costs on the task")
        return
    changed, rows = count_unlabelled(proof)
    _, low, high = counted
    told = (
        f"{kind} changes {changed} of {rows} decisions on your data (95 %: {low:.2%} to {high:.2%}){_tell_kind(proof)}"
    )
    evidence = {"changed": changed, "rows": rows, "low": low, "high": high, "limit": limit}
    if low > SPOILED:
        yield found("OX228", f"{told}, more than half of them", severity="block", evidence=evidence)
    elif low > limit:
        message = f"{told}, more than {limit:.1%}: bring labels, which tell what they are worth"
        yield found("OX228", message, evidence=evidence)
    elif high > limit:
        message = f"{told}, which may be more than {limit:.1%}: bring labels, or more rows"
        yield found("OX228", message, evidence=evidence)
    else:
        yield found("OX228", told, severity="note", evidence=evidence)


def bound_share(count: int, of: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson)."""
    # Here: importing it costs half a second, and most proofs have no use for it.
    from scipy import stats

    ends = stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    return float(ends.low), float(ends.high)


def _tell_overflow(case: CaseResult, c: Comparison, observed: Iterable[Finding]) -> Finding:
    """With the node at which it begins, where one makes infinities of right inputs."""
    assert c.cost is not None  # it was counted
    listed = (node for finding in observed for node in finding.evidence.get("nodes", ()))
    ranked = [node for node in listed if isinstance(node, Mapping) and "introduced" in node]
    first: Mapping[str, Any] = next((node for node in ranked if node["introduced"] <= OVERFLOW), {})
    # No node makes them of right inputs, and some get them.
    fed = any(node["inherited"] <= OVERFLOW for node in ranked)
    born = f", at {first['node']}" if first else ", because an input is beyond what the file takes" * fed
    message = f"{c.output} is finite in the original and overflows in this precision{born}: {c.cost.lost} elements"
    where = Where(c.output, case.name, *(first.get(name) for name in ("node", "module", "file", "line")))
    return found("OX230", message, where=where, evidence={"lost": c.cost.lost})


def _tell_cost(measured: Sequence[tuple[CaseResult, Comparison]], precision: str) -> Finding:
    case, worst = min(measured, key=lambda one: one[1].cost.decibels if one[1].cost is not None else 0.0)
    assert worst.cost is not None  # it is the least of them
    rows = sum(c.cost.rows for _, c in measured if c.cost is not None)
    changed = sum(c.cost.changed for _, c in measured if c.cost is not None)
    told = f"; the largest score is another one in {changed} of {rows} rows" if rows else ""
    message = f"{precision}: {worst.output} keeps {worst.cost.decibels:.0f} dB of the original{told}"
    evidence = {"decibels": worst.cost.decibels, "changed": changed, "rows": rows}
    return found("OX227", message, where=Where(output=worst.output, case=case.name), evidence=evidence)
