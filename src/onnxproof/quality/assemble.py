"""Scores of all examples → the facts of the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxproof.errors import FindingError, InputError
from onnxproof.findings import found
from onnxproof.proof.quality import Quality
from onnxproof.quality.accumulate import SPOKEN, Scores, measurable, missing_answers, missing_labels
from onnxproof.quality.flips import changed
from onnxproof.quality.intervals import clean_examples_needed, examples_needed, mcnemar, tango, upper_bound, wilson
from onnxproof.quality.metrics import Measured, custom, measure
from onnxproof.quality.task import Plan, raw_threshold
from onnxproof.quality.thresholds import Sweep
from onnxproof.request.evaluation import EvaluateSettings, Goal

MOST_FLIPS = 10_000
"""Flips that a proof lists."""


def assemble(
    scores: Scores,
    settings: EvaluateSettings,
    *,
    traps: Mapping[str, Any],
    preprocessing: Mapping[str, Any] | None,
    rows: int | None,
    workers: int,
    where: str,
) -> Quality:
    """Everything about a data set."""
    plan, answered = scores.plan, measurable(scores)
    unlabelled, unanswered = missing_labels(scores), _unanswered(scores)
    if scores.n and not answered.n:
        _explain_nothing(scores, unlabelled, unanswered)
    measured = measure(answered, settings.seed)
    custom(settings.metrics, answered, measured, settings.seed)
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
        intervals=measured.intervals,
        per_class=measured.per_class,
        confusion=_confusion(measured),
        flips=_listed(scores.flips),
        flip_count=scores.flipped,
        flip_rate=_flip_rate(scores),
        tests=_tests(answered, scores, settings.delta),
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
        score_difference={
            "max_abs": apart.get("worst", 0.0),
            "mean_abs": apart.get("total", 0.0) / max(apart.get("compared", 0), 1),
            "farthest": _farthest(scores),
        },
        data=settings.data,
        rows=rows,
        seconds=scores.seconds,
        workers=workers,
        where=where,
    )


def _confusion(measured: Measured) -> dict[str, Any] | None:
    """Both matrices and their difference."""
    both = measured.confusion
    if both is None or "baseline" not in both or "candidate" not in both:
        return both
    return {**both, "difference": (np.array(both["candidate"]) - np.array(both["baseline"])).tolist()}


def _listed(flips: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Unexplained ones first, the surest of them first."""
    order = {False: 0, None: 1, True: 2}
    return sorted(flips, key=lambda f: (order[f["explained"]], -abs(f["margin"] or 0.0)))[:MOST_FLIPS]


def _farthest(scores: Scores) -> list[Mapping[str, Any]]:
    """The examples that were examined, the farthest beyond rounding first."""
    rows: list[Mapping[str, Any]] = [
        {"row": int(row), **entry} for row, entry in scores.facts.get("farthest", {}).items()
    ]
    return sorted(rows, key=lambda one: -(one["times_rounding"] or 0.0))[:5]


def _unanswered(scores: Scores) -> dict[str, Any]:
    """Examples without a usable answer: on each side, on both, and the first that only one side has."""
    if scores.plan.task == "custom":
        return {}
    lost = {name: missing_answers(side, scores.plan) for name, side in scores.sides.items()}
    if not any(rows.any() for rows in lost.values()):
        return {}
    told: dict[str, Any] = {name: int(rows.sum()) for name, rows in lost.items()}
    if len(lost) == 2:
        both = lost["baseline"] & lost["candidate"]
        told |= {"both": int(both.sum()), "rows": np.flatnonzero(lost["baseline"] != lost["candidate"])[:5].tolist()}
    return told


def _explain_nothing(scores: Scores, unlabelled: Any, unanswered: Mapping[str, Any]) -> None:
    if unlabelled.all():
        raise InputError("no example of the data has a label: all of them are missing (NaN or empty)")
    told = " and ".join(f"{count} by {SPOKEN[side]}" for side, count in unanswered.items() if side in SPOKEN)
    message = f"of {scores.n} examples none could be measured: NaN is answered {told}"
    raise FindingError(found("OX518", message, evidence=unanswered))


def _flip_rate(scores: Scores) -> dict[str, float] | None:
    if not scores.plan.classification:
        return None
    interval = wilson(scores.flipped, scores.n)
    low = 0.0 if scores.flipped == 0 else interval.low
    high = upper_bound(0, scores.n) if scores.flipped == 0 else interval.high
    return {"value": scores.flipped / max(scores.n, 1), "low": low, "high": high}


def _tests(scores: Scores, every: Scores, delta: float) -> dict[str, Any]:
    """McNemar for difference, Tango's interval for sameness, and how many examples would settle it."""
    if not scores.plan.classification or len(scores.sides) < 2:
        return {}
    labels = scores.labels
    right = {side: ~changed(answers.decisions, labels) for side, answers in scores.sides.items()}
    gained = int((right["candidate"] & ~right["baseline"]).sum())
    lost = int((right["baseline"] & ~right["candidate"]).sum())
    n = scores.n
    if not n:
        return {}
    low, high = tango(gained, lost, n, 0.90)
    same = -delta < low and high < delta
    return {
        "mcnemar": {"gained": gained, "lost": lost, "p": mcnemar(lost, gained)},
        "equivalence": {
            "delta": delta,
            "difference": (gained - lost) / n,
            "low": low,
            "high": high,
            "confidence": 0.90,
            "method": "tango",
            "within": same,
            "needed": None if same else examples_needed(gained, lost, n, delta),
        },
        "flip_bound": {
            "upper": upper_bound(every.flipped, every.n),
            "confidence": 0.95,
            "for_delta": clean_examples_needed(delta),
        },
    }


# --- thresholds ---------------------------------------------------------------------------------------------------


def goals_of(settings: EvaluateSettings) -> list[Goal]:
    """The goals that a user gave."""
    return [*settings.goals, *([settings.cost] if settings.cost else [])]


def find_thresholds(scores: Scores, settings: EvaluateSettings) -> dict[str, Any] | None:
    """The trade-off over all thresholds on both sides, and the thresholds for the user's goals."""
    plan, goals = scores.plan, goals_of(settings)
    sided = {side: s.scores for side, s in scores.sides.items() if s.scores is not None}
    if plan.task != "binary" or plan.scale == "decision" or not sided:
        if goals:
            raise InputError(
                f"--goal and --cost choose a threshold for binary scores; the task is {plan.task} ({plan.scale})"
            )
        return None
    known = scores.labels >= 0
    positive = scores.labels[known] == plan.positive
    sweeps = {side: Sweep.of(values[known], positive) for side, values in sided.items()}
    cut = raw_threshold(plan.cut, plan)
    return {
        "scale": "probability",
        "current": {"threshold": plan.cut, "raw": cut, **{side: sweep.at(cut) for side, sweep in sweeps.items()}},
        **{side: _curve(sweep, plan) for side, sweep in sweeps.items()},
        "goals": [_chosen(goal, sweeps, plan, {s: v[known] for s, v in sided.items()}) for goal in goals],
        "chosen": {"threshold": plan.cut},
    }


def _curve(sweep: Sweep, plan: Plan) -> dict[str, list[float]]:
    columns = sweep.curve()
    return {**columns, "threshold": [_probability(raw, plan) for raw in columns["threshold"]]}


def _probability(raw: float, plan: Plan) -> float:
    return raw if plan.scale == "probability" else float(1.0 / (1.0 + np.exp(-np.clip(raw, -700, 700))))


def _chosen(goal: Goal, sweeps: Mapping[str, Sweep], plan: Plan, sided: Mapping[str, Any]) -> dict[str, Any]:
    """The threshold that each side would choose, how far it moved, and what the baseline's does on the candidate."""
    entry: dict[str, Any] = {"goal": goal.text, "kind": goal.kind, "metric": goal.metric, "value": goal.value}
    raw: dict[str, float] = {}
    for side, sweep in sweeps.items():
        threshold = sweep.choose(goal)
        entry[side] = None
        if threshold is not None:
            raw[side] = threshold
            entry[side] = {"threshold": _probability(threshold, plan), "raw": threshold, **_at(sweep, threshold, goal)}
    if len(raw) == 2:
        entry["moved"] = entry["candidate"]["threshold"] - entry["baseline"]["threshold"]
        entry["moved_raw"] = raw["candidate"] - raw["baseline"]
        cut = raw["baseline"]
        flips = int(((sided["baseline"] >= cut) != (sided["candidate"] >= cut)).sum())
        entry["transferred"] = {**_at(sweeps["candidate"], cut, goal), "flips": flips}
    return entry


def _at(sweep: Sweep, threshold: float, goal: Goal) -> dict[str, Any]:
    counts = sweep.at(threshold)
    if goal.kind == "cost":
        total = sum(goal.costs.get(name, 0.0) * counts[name] for name in ("fn", "fp", "tp", "tn"))
        counts["cost"] = total / max(sweep.positives + sweep.negatives, 1)
    return counts
