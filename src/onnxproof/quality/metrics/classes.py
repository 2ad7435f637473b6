"""One class per example: counts, confusion, probabilities, calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from onnxproof.quality.accumulate import Scores, Side
from onnxproof.quality.intervals import Bootstrap, Sums, paired, percentile, wilson
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.resampled import AUC_CLASSES, area_intervals, mean_intervals
from onnxproof.quality.task import Plan, probabilities
from onnxproof.quality.thresholds import Sweep

Array = NDArray[Any]
CALIBRATION_BINS = 15


def of_classes(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    count = len(plan.classes)
    matrices = {side: confusion(labels, s.decisions, count) for side, s in scores.sides.items()}
    measured.confusion = {"labels": list(plan.classes), **{side: m.tolist() for side, m in matrices.items()}}
    for side, answers in scores.sides.items():
        _counted(measured, side, labels, answers.decisions, matrices[side], plan)
        _graded(measured, side, labels, answers, plan)
    _class_intervals(scores, measured, bootstrap)
    _graded_intervals(scores, measured, bootstrap)
    measured.calibration = {
        side: _reliability(labels, s, plan) for side, s in scores.sides.items() if plan.scale != "decision"
    }


def confusion(labels: Array, decisions: Array, count: int) -> NDArray[np.int64]:
    """Rows are true classes, columns decisions; what has no label or no decision is in neither."""
    known = (labels >= 0) & (decisions >= 0) & (decisions < count)
    cells = labels[known].astype(np.int64) * count + decisions[known]
    return np.bincount(cells, minlength=count * count).reshape(count, count)


def _counted(measured: Measured, side: str, labels: Array, decisions: Array, matrix: Array, plan: Plan) -> None:
    known = labels >= 0
    n = int(known.sum())
    support = np.bincount(labels[known], minlength=len(plan.classes))
    right, decided = matrix.diagonal(), matrix.sum(axis=0)
    measured.proportion(side, "accuracy", int(right.sum()), n)
    precision, recall, f1, _ = sk.precision_recall_fscore_support(
        labels[known], decisions[known], labels=np.arange(len(plan.classes)), zero_division=0
    )
    present = support > 0
    if plan.task == "binary":
        p = plan.positive
        measured.proportion(side, "precision", int(right[p]), int(decided[p]))
        measured.proportion(side, "recall", int(right[p]), int(support[p]))
        measured.put(side, "f1", f1[p])
    else:
        weights = support / max(n, 1)
        seen = present | (decided > 0)  # as scikit-learn averages: a class that is only ever wrongly decided for counts
        for name, values in (("precision", precision), ("recall", recall), ("f1", f1)):
            measured.put(side, name, float(values[seen].mean()) if seen.any() else 0.0)
            measured.put(side, f"{name}_weighted", float((values * weights).sum()))
    measured.put(side, "balanced_accuracy", float(recall[present].mean()) if present.any() else 0.0)
    for k, name in enumerate(plan.classes):
        entry = measured.per_class.setdefault(name, {"support": int(support[k])})
        low_recall, low_precision = wilson(int(right[k]), int(support[k])), wilson(int(right[k]), int(decided[k]))
        entry[side] = {
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(f1[k]),
            "recall_low": low_recall.low,
            "recall_high": low_recall.high,
            "precision_low": low_precision.low,
            "precision_high": low_precision.high,
        }


def class_scores(answers: Side, plan: Plan) -> Sequence[tuple[int, Array]]:
    """(class, scores toward it), for the classes that have scores."""
    if answers.scores is None or plan.scale == "decision":
        return []
    if plan.task == "binary":
        return [(plan.positive, answers.scores)]
    # Areas under curves compare classes across rows: logits have to become probabilities first.
    p = probabilities(answers.scores, plan).astype(np.float32)
    return [(k, p[:, k]) for k in range(p.shape[1])]


def _graded(measured: Measured, side: str, labels: Array, answers: Side, plan: Plan) -> None:
    """What needs scores: areas under curves, log-loss, Brier."""
    known = labels >= 0
    areas: list[tuple[float, float]] = []
    for k, toward in class_scores(answers, plan):
        sweep = Sweep.of(toward[known], labels[known] == k)
        pair = sweep.roc_auc(), sweep.average_precision()
        measured.per_class[plan.classes[k]][side] |= {"roc_auc": pair[0], "pr_auc": pair[1]}
        if not math.isnan(pair[0]):
            areas.append(pair)
    if areas:
        measured.put(side, "roc_auc", float(np.mean([a for a, _ in areas])))
        measured.put(side, "pr_auc", float(np.mean([b for _, b in areas])))
    for name, values in losses(labels, answers, plan).items():
        finite = values[known & np.isfinite(values)]
        if finite.size:
            measured.put(side, name, float(finite.mean(dtype=np.float64)))


def losses(labels: Array, answers: Side, plan: Plan) -> dict[str, Array]:
    """Log-loss and Brier's score of every example."""
    if plan.scale == "decision":
        return {}
    if answers.scores is None:
        true, square = answers.true, answers.square
        assert true is not None  # kept where scores are not
        assert square is not None
        return {"log_loss": -np.log(np.clip(true.astype(np.float64), 1e-15, 1.0)), "brier": square.astype(np.float64)}
    if plan.task == "binary":
        positive = labels == plan.positive
        p = probabilities(answers.scores, plan)
        true = np.where(positive, p, 1.0 - p)
        return {"log_loss": -np.log(np.clip(true, 1e-15, 1.0)), "brier": (p - positive) ** 2}
    p = probabilities(answers.scores, plan)
    rows = np.arange(len(p))
    true = p[rows, np.maximum(labels, 0)]
    square = (p**2).sum(axis=1) - 2.0 * true + 1.0
    return {"log_loss": -np.log(np.clip(true, 1e-15, 1.0)), "brier": square}


def confidence(labels: Array, answers: Side, plan: Plan) -> tuple[Array, Array]:
    """What calibration compares: a probability, and whether it came true.

    For a binary task the probability of the positive class, else that of the decision.
    """
    if plan.task == "binary" and answers.scores is not None:
        return probabilities(answers.scores, plan), labels == plan.positive
    right = answers.decisions == labels
    if answers.scores is None:
        assert answers.confidence is not None  # kept where scores are not
        return answers.confidence.astype(np.float64), right
    return probabilities(answers.scores, plan).max(axis=1), right


def bins(probability: Array) -> Array:
    """The bin of each probability; −1 for none."""
    with np.errstate(invalid="ignore"):
        places = np.clip((probability * CALIBRATION_BINS).astype(np.int64), 0, CALIBRATION_BINS - 1)
    return np.where(np.isfinite(probability), places, -1)


def expected_error(sums: Sums) -> NDArray[np.float64]:
    """Rows of (count, sum of probabilities, sum of hits) per bin → expected calibration error."""
    count, p, hit = np.split(sums, 3, axis=1)
    return np.asarray(np.abs(p - hit).sum(axis=1) / np.maximum(count.sum(axis=1), 1))


def _calibration_sums(labels: Array, answers: Side, plan: Plan, bootstrap: Bootstrap) -> Sums:
    p, hit = confidence(labels, answers, plan)
    cells = np.where(labels >= 0, bins(p), -1)
    parts = [bootstrap.sums(cells, w, CALIBRATION_BINS) for w in (None, p, hit.astype(np.float64))]
    return np.concatenate(parts, axis=1)


def _reliability(labels: Array, answers: Side, plan: Plan) -> list[dict[str, float]]:
    """Per bin that is not empty: count, mean probability, share that came true."""
    p, hit = confidence(labels, answers, plan)
    cells = np.where(labels >= 0, bins(p), -1)
    rows = []
    for i in range(CALIBRATION_BINS):
        chosen = cells == i
        count = int(chosen.sum())
        if count:
            rows.append({"count": count, "confidence": float(p[chosen].mean()), "accuracy": float(hit[chosen].mean())})
    return rows


def _class_intervals(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    count = len(plan.classes)
    support = bootstrap.sums(labels, None, count)
    sums = {}
    for side, answers in scores.sides.items():
        right = np.where(answers.decisions == labels, labels, -1)
        decided = np.where(labels >= 0, answers.decisions, -1)
        sums[side] = np.concatenate(
            [bootstrap.sums(right, None, count), bootstrap.sums(decided, None, count), support], axis=1
        )
    totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
    for metric, statistic in count_statistics(plan).items():
        measured.bootstrapped(metric, paired(totals, statistic))
    class_f1_intervals(plan, totals, measured)


def class_f1_intervals(plan: Plan, totals: Mapping[str, Sums], measured: Measured) -> None:
    """F1 of each class, from replicates of (right, decided, support) per class."""
    for side, sums in totals.items():
        right, decided, support = np.split(sums, 3, axis=1)
        f1 = 2 * right / np.maximum(decided + support, 1)
        for k, name in enumerate(plan.classes):
            measured.of_class(name, side, "f1", percentile(f1[:, k]))


def count_statistics(plan: Plan) -> dict[str, Callable[[Sums], NDArray[np.float64]]]:
    """Statistics of (right, decided, support) per class."""

    def parts(sums: Sums) -> tuple[Array, Array, Array]:
        right, decided, support = np.split(sums, 3, axis=1)
        return right, decided, support

    def rates(sums: Sums) -> dict[str, Array]:
        right, decided, support = parts(sums)
        return {
            "precision": right / np.maximum(decided, 1),
            "recall": right / np.maximum(support, 1),
            "f1": 2 * right / np.maximum(decided + support, 1),
        }

    def accuracy(sums: Sums) -> NDArray[np.float64]:
        right, _, support = parts(sums)
        return np.asarray(right.sum(axis=1) / np.maximum(support.sum(axis=1), 1))

    def single(name: str) -> Callable[[Sums], NDArray[np.float64]]:
        return lambda sums: np.asarray(rates(sums)[name][:, plan.positive])

    def macro(name: str, *, decided: bool = True) -> Callable[[Sums], NDArray[np.float64]]:
        def statistic(sums: Sums) -> NDArray[np.float64]:
            present = (parts(sums)[2] > 0) | (decided & (parts(sums)[1] > 0)) | (plan.task == "multilabel")
            return np.asarray((rates(sums)[name] * present).sum(axis=1) / np.maximum(present.sum(axis=1), 1))

        return statistic

    def weighted(name: str) -> Callable[[Sums], NDArray[np.float64]]:
        def statistic(sums: Sums) -> NDArray[np.float64]:
            support = parts(sums)[2]
            return np.asarray((rates(sums)[name] * support).sum(axis=1) / np.maximum(support.sum(axis=1), 1))

        return statistic

    chosen = {"accuracy": accuracy, "balanced_accuracy": macro("recall", decided=False)}
    for name in ("precision", "recall", "f1"):
        chosen[name] = single(name) if plan.task == "binary" else macro(name)
        if plan.task != "binary":
            chosen[f"{name}_weighted"] = weighted(name)
    return chosen


def _graded_intervals(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    if plan.scale == "decision":
        return
    mean_intervals(
        labels >= 0, {side: losses(labels, s, plan) for side, s in scores.sides.items()}, measured, bootstrap
    )
    calibration = {side: _calibration_sums(labels, s, plan, bootstrap) for side, s in scores.sides.items()}
    for side, sums in calibration.items():
        measured.put(side, "ece", float(expected_error(sums.sum(axis=0, keepdims=True))[0]))
    totals = {side: bootstrap.totals(sums) for side, sums in calibration.items()}
    measured.bootstrapped("ece", paired(totals, expected_error))
    if len(plan.classes) <= AUC_CLASSES:
        by_class = {side: dict(class_scores(s, plan)) for side, s in scores.sides.items()}
        truths = {k: np.where(labels >= 0, labels == k, -1) for k in next(iter(by_class.values()))}
        area_intervals(plan.classes, truths, by_class, measured, bootstrap)
