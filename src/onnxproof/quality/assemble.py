"""Scores of all examples → the facts of the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from onnxproof.errors import FindingError, InputError
from onnxproof.findings import found
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.quality import (
    ClassFacts,
    Equivalence,
    FarExample,
    Flip,
    FlipBound,
    McNemar,
    MetricInterval,
    Quality,
    Rate,
    ScoreDifference,
    Tests,
    Unanswered,
)
from onnxproof.proof.thresholds import Chosen, Current, Curve, GoalResult, Thresholds
from onnxproof.proof.traps import PreprocessingFacts, Traps
from onnxproof.quality.accumulate import SIDES, Scores, choose_measurable, find_missing_answers, find_missing_labels
from onnxproof.quality.flips import find_changed
from onnxproof.quality.intervals import (
    bound_above,
    bound_difference,
    bound_proportion,
    compute_mcnemar,
    count_clean_examples,
    count_examples_needed,
)
from onnxproof.quality.metrics import measure
from onnxproof.quality.metrics.own import measure_custom
from onnxproof.quality.task import Plan, scale_threshold
from onnxproof.quality.thresholds import Sweep
from onnxproof.request.evaluation import EvaluateSettings, Goal

# Flips that a proof lists.
MOST_FLIPS = 10_000


def assemble(
    scores: Scores,
    settings: EvaluateSettings,
    *,
    traps: Traps,
    preprocessing: PreprocessingFacts | None,
    rows: int | None,
    workers: int,
    where: str,
    baseline: str = "PyTorch",
) -> Quality:
    """Everything about a data set."""
    plan, answered = scores.plan, choose_measurable(scores)
    unlabelled, unanswered = find_missing_labels(scores), _count_unanswered(scores)
    if scores.n and not answered.n:
        _explain_nothing(scores, unlabelled, unanswered, baseline)
    measured = measure(answered, settings.seed)
    measure_custom(settings.metrics, answered, measured, settings.seed)
    if not measured.values.get("candidate"):
        raise InputError("nothing could be measured: give a metric of your own with --metric file.py:function")
    apart = scores.facts.get("apart", {})
    return Quality(
        task=plan.task,
        n=scores.n,
        scale=plan.scale,
        output=plan.output,
        baseline=measured.values.get("baseline", {}),
        candidate=measured.values.get("candidate", {}),
        intervals={name: decode(entry, MetricInterval) for name, entry in measured.intervals.items()},
        per_class={name: ClassFacts(**entry) for name, entry in measured.per_class.items()},
        confusion=measured.confusion,
        flips=_list_flips(scores.flips),
        flip_count=scores.flipped,
        flip_rate=_measure_flip_rate(scores),
        decisions=_count_decisions(scores),
        tests=_run_tests(answered, scores, settings.delta),
        thresholds=find_thresholds(answered, settings),
        calibration=measured.calibration,
        traps=traps,
        preprocessing=preprocessing,
        classes=plan.classes,
        positive=plan.classes[plan.positive] if plan.task == "binary" else None,
        guessed=plan.guessed,
        measured=answered.n,
        unlabelled=int(unlabelled.sum()),
        unanswered=unanswered,
        score_difference=ScoreDifference(
            apart.get("worst", 0.0), apart.get("total", 0.0) / max(apart.get("compared", 0), 1), _list_farthest(scores)
        ),
        data=settings.data,
        rows=rows,
        seconds=scores.seconds,
        workers=workers,
        where=where,
    )


def _list_flips(flips: Sequence[Mapping[str, Any]]) -> tuple[Flip, ...]:
    """Unexplained ones first, the surest of them first."""
    order = {False: 0, None: 1, True: 2}
    ranked = sorted(flips, key=lambda f: (order[f.get("explained")], -abs(f.get("margin") or 0.0)))
    return tuple(Flip(**flip) for flip in ranked[:MOST_FLIPS])


def _list_farthest(scores: Scores) -> tuple[FarExample, ...]:
    """The examples that were examined, the farthest beyond rounding first."""
    # A shard that was on disk has texts for the numbers, as keys in JSON are.
    rows = [FarExample(int(row), **entry) for row, entry in scores.facts.get("farthest", {}).items()]
    return tuple(sorted(rows, key=lambda one: -(one.times_rounding or 0.0))[:5])


def _count_unanswered(scores: Scores) -> Unanswered:
    """Examples without a usable answer: on each side, on both, and the first that only one side has."""
    if scores.plan.task == "custom" or not scores.plan.by_row:
        return Unanswered()
    baseline, candidate = (find_missing_answers(scores.sides[side], scores.plan) for side in SIDES)
    if not baseline.any() and not candidate.any():
        return Unanswered()
    rows = np.flatnonzero(baseline != candidate)[:5].tolist()
    return Unanswered(int(baseline.sum()), int(candidate.sum()), int((baseline & candidate).sum()), tuple(rows))


def _explain_nothing(scores: Scores, unlabelled: Any, unanswered: Unanswered, baseline: str) -> None:
    if unlabelled.all():
        raise InputError("no example of the data has a label: all of them are missing (NaN or empty)")
    told = f"{unanswered.baseline} by {baseline} and {unanswered.candidate} by onnxruntime"
    message = f"of {scores.n} examples none could be measured: NaN is answered {told}"
    raise FindingError(found("OX518", message, evidence=to_plain(unanswered)))


def _measure_flip_rate(scores: Scores) -> Rate | None:
    if not scores.plan.classification and scores.plan.by_row:
        return None
    n = _count_decisions(scores) or scores.n
    return Rate(*bound_proportion(scores.flipped, n)) if scores.flipped else Rate(0.0, 0.0, bound_above(0, n))


def _count_decisions(scores: Scores) -> int | None:
    """Labelled places, or boxes that either side has; None where an example is one decision."""
    if scores.plan.by_row:
        return None
    if scores.plan.placed:
        return int(scores.labels.sum())
    return len(scores.columns["baseline_boxes"]) + scores.flipped


def _run_tests(scores: Scores, every: Scores, delta: float) -> Tests:
    """McNemar for difference, Tango's interval for sameness, and how many examples would settle it."""
    n = scores.n
    if not n or not scores.plan.classification:
        return Tests()
    right = {side: ~find_changed(answers.decisions, scores.labels) for side, answers in scores.sides.items()}
    gained = int((right["candidate"] & ~right["baseline"]).sum())
    lost = int((right["baseline"] & ~right["candidate"]).sum())
    # Two one-sided tests at 5 % each.
    low, high = bound_difference(gained, lost, n, 0.90)
    same = -delta < low and high < delta
    return Tests(
        McNemar(gained, lost, compute_mcnemar(lost, gained)),
        Equivalence(
            delta=delta,
            difference=(gained - lost) / n,
            low=low,
            high=high,
            confidence=0.90,
            method="tango",
            within=same,
            needed=None if same else count_examples_needed(gained, lost, n, delta),
        ),
        FlipBound(bound_above(every.flipped, every.n), 0.95, count_clean_examples(delta)),
    )


def find_thresholds(scores: Scores, settings: EvaluateSettings) -> Thresholds | None:
    """The trade-off over all thresholds on both sides, and the thresholds for the user's goals."""
    plan, goals = scores.plan, [*settings.goals, *([settings.cost] if settings.cost else [])]
    sided = {side: s.scores for side, s in scores.sides.items() if s.scores is not None}
    if plan.task != "binary" or plan.scale == "decision" or not sided:
        if goals:
            raise InputError(
                f"--goal and --cost choose a threshold for binary scores; the task is {plan.task} ({plan.scale})"
            )
        return None
    sweeps = {side: Sweep.of(values, scores.labels == plan.positive) for side, values in sided.items()}
    cut = scale_threshold(plan.cut, plan)
    return Thresholds(
        scale="probability",
        current=Current(plan.cut, cut, sweeps["baseline"].at(cut), sweeps["candidate"].at(cut)),
        baseline=_make_curve(sweeps["baseline"], plan),
        candidate=_make_curve(sweeps["candidate"], plan),
        goals=tuple(_choose_thresholds(goal, sweeps, plan, sided) for goal in goals),
        chosen=Chosen(plan.cut),
    )


def _make_curve(sweep: Sweep, plan: Plan) -> Curve:
    curve = sweep.curve()
    return replace(curve, threshold=tuple(_to_probability(raw, plan) for raw in curve.threshold))


def _to_probability(raw: float, plan: Plan) -> float:
    return raw if plan.scale == "probability" else float(expit(raw))


def _choose_thresholds(goal: Goal, sweeps: Mapping[str, Sweep], plan: Plan, sided: Mapping[str, Any]) -> GoalResult:
    """The threshold that each side would choose, how far it moved, and what the baseline's does on the candidate."""
    raw = {side: sweep.choose(goal) for side, sweep in sweeps.items()}
    ends = {
        side: None
        if cut is None
        else replace(sweeps[side].at(cut, goal.costs), threshold=_to_probability(cut, plan), raw=cut)
        for side, cut in raw.items()
    }
    result = GoalResult(goal.text, goal.kind, goal.metric, goal.value, ends["baseline"], ends["candidate"])
    cut, theirs = raw["baseline"], raw["candidate"]
    if cut is None or theirs is None:
        return result
    flips = int(((sided["baseline"] >= cut) != (sided["candidate"] >= cut)).sum())
    return replace(
        result,
        moved=_to_probability(theirs, plan) - _to_probability(cut, plan),
        moved_raw=theirs - cut,
        transferred=replace(sweeps["candidate"].at(cut, goal.costs), flips=flips),
    )
