"""Opinions about task quality: facts of a data set → findings."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from onnxproof.errors import UserError, list_names
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.policy.data import judge_data
from onnxproof.proof.codec import to_plain
from onnxproof.proof.quality import FarExample, Quality
from onnxproof.request.thresholds import QualityPolicy

LOWER_IS_BETTER = frozenset({"perplexity", "log_loss", "ece", "brier", "mae", "rmse", "relative_error"})

# Metrics of which some loss is told without being asked.
SHARES = ("accuracy", "hamming_accuracy", "miou", "token_accuracy", "map", "recall_at_1")


def check_gates(policy: QualityPolicy, quality: Quality | None) -> None:
    """A gate on a metric that was not measured is a promise about nothing."""
    flags = {"--min": policy.minimum, "--max": policy.maximum, "--max-drop": policy.max_drop}
    for flag, metric in ((flag, metric) for flag, gates in flags.items() for metric in gates):
        if quality is None:
            raise UserError(f"{flag} needs an evaluation: give --data with labels (`onnxproof evaluate`)")
        if quality.value(metric) is None:
            known = [*quality.candidate, *(f"recall[{name}]" for name in list(quality.per_class)[:5])]
            raise UserError(f"{flag} {metric}: no such metric was measured; there are {list_names(known)}")


def judge_quality(
    quality: Quality, policy: QualityPolicy, baseline: str = "PyTorch", precision: str | None = None
) -> list[Finding]:
    """What is to be said about a data set under this policy; where a lower `precision` was chosen, changes are its price."""
    differences = (
        [*_judge_flips(quality, baseline), *_judge_scores(quality, policy)]
        if precision is None
        else _tell_priced_flips(quality, precision)
    )
    return [
        *_judge_nan(quality, baseline),
        *differences,
        *_judge_gates(quality, policy, baseline),
        *_judge_rare(quality, policy),
        *_judge_accuracy(quality, policy),
        *_judge_drops(quality, policy, baseline, "review" if precision is None else "block"),
        *_judge_thresholds(quality, baseline),
        *_judge_sameness(quality),
        *_judge_balance(quality, policy),
        *judge_data(quality),
    ]


def _judge_nan(q: Quality, baseline: str) -> Iterable[Finding]:
    """Examples that a side answers with NaN: they are in no metric."""
    lost = q.unanswered
    if not lost.candidate and not lost.baseline:
        return
    where, evidence = Where(output=q.output), to_plain(lost)
    if lost.candidate == lost.baseline == lost.both:
        message = f"both sides answer NaN for {lost.both} of {q.n} examples, which are in no metric"
        yield found("OX516", message, where=where, severity="review", evidence=evidence)
    else:
        first = f", the first is row {lost.rows[0]}" if lost.rows else ""
        sides = f"onnxruntime answers NaN for {lost.candidate} of {q.n} examples and {baseline} for {lost.baseline}"
        yield found("OX516", f"{sides}{first}; they are in no metric", where=where, evidence=evidence)


def _judge_scores(q: Quality, policy: QualityPolicy) -> Iterable[Finding]:
    """Scores that differ beyond rounding without a decision that shows it."""
    far = [one for one in q.score_difference.farthest if (one.times_rounding or 0.0) > policy.beyond]
    if not far or q.unexplained:
        return
    worst = far[0]
    message = (
        f"the scores differ by up to {q.score_difference.max_abs:.3g}, which rounding does not explain: example {worst.id} by "
        f"{worst.difference:.3g}, {worst.times_rounding:.3g} times what rounding may do"
    )
    message += _tell_step(worst)
    yield found("OX517", message, where=Where(output=q.output), evidence={"examples": to_plain(far)})


def _judge_flips(q: Quality, baseline: str) -> Iterable[Finding]:
    unexplained, where = q.unexplained, Where(output=q.output)
    seen = sum(1 for f in q.flips if f.explained is not None)
    changed = f"{q.flip_count} of {q.decisions or q.n} {'boxes' if q.task == 'detection' else 'decisions'} changed"
    if unexplained:
        worst = unexplained[0]
        more = f" of {seen} that were examined" if seen < q.flip_count else ""
        margin = "" if worst.margin is None else f" (margin {worst.margin:.3g})"
        nothing = "nothing" if q.task == "detection" else "nothing (NaN)"
        place = "" if worst.place is None else f" at {_place(q, worst.place)}"
        message = (
            f"{changed}, {len(unexplained)}{more} not by rounding: example {worst.id}{place} is "
            f"{_show_decision(worst.baseline, nothing)} in {baseline} and {_show_decision(worst.candidate, nothing)} in onnxruntime{margin}"
        )
        evidence = {"flips": q.flip_count, "unexplained": len(unexplained), "examples": to_plain(unexplained[:5])}
        shown = [one for one in q.score_difference.farthest if one.step is not None]
        if shown:
            message += _tell_step(shown[0])
            evidence |= {"step": shown[0].step, "file": shown[0].file}
        yield found("OX502", message, where=where, evidence=evidence)
    elif q.flip_count:
        more = f" ({seen} of them were examined)" if seen < q.flip_count else ""
        message = f"{changed} where the margin is within rounding{more}"
        yield found("OX503", message, where=where, evidence={"flips": q.flip_count, "examples": to_plain(q.flips[:5])})


def _tell_priced_flips(q: Quality, precision: str) -> Iterable[Finding]:
    """Changes are counted; what they are worth the metrics say."""
    if not q.flip_count:
        return
    rate = q.flip_rate
    bound = "" if rate is None else f" (95 %: {rate.low:.2%} to {rate.high:.2%})"
    message = f"{precision} changes {q.flip_count} of {q.n} decisions{bound}"
    evidence = {"flips": q.flip_count, "n": q.n, "examples": to_plain(q.flips[:5])}
    yield found("OX519", message, where=Where(output=q.output), evidence=evidence)


def _tell_step(far: FarExample) -> str:
    shows = f"; the first step of example {far.id} that shows it is {far.step}, whose inputs are in {far.file}"
    return shows if far.step is not None else ""


def _place(q: Quality, place: Sequence[float]) -> str:
    return f"step {place[0]:.0f}" if q.task == "generate" else str(list(place))


def _show_decision(decision: Any, nothing: str) -> str:
    if isinstance(decision, list):
        return f"[{', '.join(map(str, decision))}]"
    return nothing if decision is None else str(decision)


def _judge_gates(q: Quality, policy: QualityPolicy, baseline: str) -> Iterable[Finding]:
    gates = [("at least", policy.minimum, operator.lt), ("at most", policy.maximum, operator.gt)]
    for sign, metric, gate, fails in ((sign, *one, fails) for sign, ones, fails in gates for one in ones.items()):
        value, other, low = q.value(metric), q.value(metric, "baseline"), q.low_end(metric)
        if value is None:
            continue
        evidence = {"metric": metric, "value": value, "gate": gate, "baseline": other}
        if fails(value, gate):
            also = "" if other is None else f" ({baseline}: {other:.4g})"
            yield found("OX504", f"{metric} is {value:.4g}{also}, and must be {sign} {gate:g}", evidence=evidence)
        elif sign == "at least" and low is not None and low < gate:
            message = f"{metric} is {value:.4g} and meets {gate:g}; its interval reaches down to {low:.4g}"
            yield found("OX509", message, evidence={**evidence, "low": low})


def _judge_rare(q: Quality, policy: QualityPolicy) -> Iterable[Finding]:
    """Unless a gate says what recall is enough for the class."""
    if q.task not in ("binary", "multiclass"):
        return
    gated = {m for m in policy.minimum if m.startswith("recall[")}
    if "recall" in policy.minimum and q.positive is not None:
        gated.add(f"recall[{q.positive}]")
    missed = {}
    limit = min(policy.rare, 0.75 / max(len(q.per_class), 1))
    for name, share in q.shares().items():
        recall = q.value(f"recall[{name}]")
        known = q.per_class[name].support and f"recall[{name}]" not in gated
        if known and recall is not None and share < limit and recall < policy.rare_recall:
            missed[name] = (recall, share)
    worst = sorted(missed, key=lambda name: missed[name])
    for number, name in enumerate(worst[: policy.most_rare], 1):
        others = len(worst) - number if number == policy.most_rare else 0
        yield _tell_missed(q, name, *missed[name], others)


def _tell_missed(q: Quality, name: str, recall: float, share: float, others: int) -> Finding:
    accuracy, support = q.candidate.get("accuracy", 0.0), q.per_class[name].support
    caught = round(recall * support)
    more = f"; {others} more classes are missed like it" if others > 0 else ""
    message = (
        f"recall of class {name} is {recall:.1%} ({caught} of {support} found), accuracy is {accuracy:.1%}: "
        f"the class is {share:.1%} of the examples{more}"
    )
    severity: Severity = "block" if support >= 5 else "review"  # a handful of examples proves little
    evidence = {"class": name, "recall": recall, "share": share, "accuracy": accuracy}
    return found("OX505", message, severity=severity, evidence=evidence)


def _judge_accuracy(q: Quality, policy: QualityPolicy) -> Iterable[Finding]:
    metric = "hamming_accuracy" if q.task == "multilabel" else "accuracy"
    value = q.candidate.get(metric)
    if value is None or value >= policy.accuracy or metric in policy.minimum or "accuracy" in policy.minimum:
        return
    other = q.baseline.get(metric)
    message = f"{metric.replace('_', ' ')} is {value:.1%}, below {policy.accuracy:.0%}"
    if q.guessed:
        order = f"guessed from the alphabet ({list_names(q.classes[:6])})"
        message += f"; the order of the classes is {order}: give it with --classes"
    yield found("OX506", message, evidence={"accuracy": value, "baseline": other, "limit": policy.accuracy})


def _judge_drops(q: Quality, policy: QualityPolicy, baseline: str, default: Severity) -> Iterable[Finding]:
    """More than the policy allows; without one, more than a little and more than chance, which is as grave as `default`."""
    for metric, allowed in policy.max_drop.items():
        yield from _judge_drop(q, metric, allowed, "block", baseline)
    if not policy.max_drop:
        little = policy.default_drop
        defaults = {**dict.fromkeys(SHARES, little), "mae": little * q.baseline.get("mae", 0.0)}
        for metric in (metric for metric in defaults if _is_significant(q, metric)):
            yield from _judge_drop(q, metric, defaults[metric], default, baseline)


def _is_significant(q: Quality, metric: str) -> bool:
    """Whether the drop is more than chance."""
    if metric == "accuracy" and q.tests.mcnemar is not None:
        return q.tests.mcnemar.p < 0.05
    interval = q.intervals.get(metric)
    low, high = (interval and interval.difference) or (0.0, 0.0)
    return low > 0.0 or high < 0.0


def _judge_drop(q: Quality, metric: str, allowed: float, severity: Severity, baseline: str) -> Iterable[Finding]:
    measured = measure_drop(q, metric)
    if measured is not None and measured[0] > allowed:
        ours, theirs, drop = q.value(metric), q.value(metric, "baseline"), measured[0]
        message = f"{metric} is {theirs:.4g} in {baseline} and {ours:.4g} in onnxruntime: worse by {drop:.3g}, allowed is {allowed:.3g}"
        evidence = {"metric": metric, "baseline": theirs, "candidate": ours, "allowed": allowed}
        yield found("OX507", message, severity=severity, evidence=evidence)


def measure_drop(q: Quality, metric: str) -> tuple[float, float, float] | None:
    """By how much the candidate is worse than the baseline, with its 95 % interval; None where it was not measured."""
    ours, theirs = q.value(metric), q.value(metric, "baseline")
    if ours is None or theirs is None:
        return None
    sign = 1 if metric.partition("[")[0] in LOWER_IS_BETTER else -1
    # No loss is not a negative zero.
    interval, drop = q.intervals.get(metric), sign * (ours - theirs) + 0.0
    ends = sorted(sign * end + 0.0 for end in (interval and interval.difference) or (sign * drop, sign * drop))
    return drop, ends[0], ends[1]


def _judge_thresholds(q: Quality, baseline: str) -> Iterable[Finding]:
    if q.thresholds is None:
        return
    for goal in q.thresholds.goals:
        if goal.candidate is None:
            curve = q.thresholds.candidate
            best = max(curve.precision if goal.metric == "precision" else curve.recall, default=0.0)
            yield found("OX511", f"no threshold reaches {goal.goal}: the best is {best:.4g}", evidence=to_plain(goal))
            continue
        moved = goal.transferred
        if moved is None or goal.baseline is None:
            continue
        before, after = goal.reached(goal.baseline), goal.reached(moved)
        if after < before - 1e-3 or (goal.kind == "at-least" and after < goal.value - 5e-3):
            message = (
                f"the threshold for {goal.goal} is {goal.baseline.threshold:.6g} in {baseline} and {goal.candidate.threshold:.6g} "
                f"in onnxruntime: {baseline}'s changes {moved.flips} decisions there"
            )
            yield found("OX510", message, evidence=to_plain(goal))


def _judge_sameness(q: Quality) -> Iterable[Finding]:
    test = q.tests.equivalence
    if test is None or test.within or q.unexplained:
        return
    more = "no number of examples with this difference would"
    if test.needed:
        more = f"about {test.needed:,} examples would settle it"
    message = (
        f"{q.n} examples cannot show that accuracies are within ±{test.delta:g}: the difference lies between "
        f"{test.low:+.4f} and {test.high:+.4f}; {more}"
    )
    yield found("OX508", message, evidence=to_plain(test))


def _judge_balance(q: Quality, policy: QualityPolicy) -> Iterable[Finding]:
    if q.task not in ("binary", "multiclass"):
        return
    shares = q.shares()
    empty = [name for name, facts in q.per_class.items() if not facts.support]
    if empty:
        names = ", ".join(empty[:5]) + (" …" if len(empty) > 5 else "")
        message = f"no example of class {names}: nothing was measured for it"
        yield found("OX513", message, evidence={"classes": empty[:50]})
    if max(shares.values(), default=0.0) > policy.imbalanced:
        name = max(shares, key=lambda key: shares[key])
        message = f"{shares[name]:.1%} of the examples are class {name}: who always says {name} has that accuracy"
        yield found("OX512", message, evidence={"shares": dict(list(shares.items())[:20])})


def is_imbalanced(q: Quality) -> bool:
    """Whether accuracy should not lead."""
    return q.task == "binary" and max(q.shares().values(), default=0.0) > QualityPolicy().imbalanced
