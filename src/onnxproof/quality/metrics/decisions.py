"""Decisions, one class or several labels per example: counts, probabilities, calibration, areas under curves."""

from __future__ import annotations

import numpy as np

from onnxproof.proof.quality import Bin, Confusion
from onnxproof.quality.accumulate import Scores, Side
from onnxproof.quality.intervals import Bootstrap, Resampled, Statistic, Sums, bound_middle, bound_proportion
from onnxproof.quality.metrics.areas import measure_areas
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.task import Plan, to_probabilities
from onnxproof.tensors.arrays import Array, Floats

CALIBRATION_BINS = 15
RATES = ("precision", "recall", "f1")


def measure_decisions(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Of examples that all have labels and answers."""
    labels, plan = scores.labels, scores.plan
    for side, answers in scores.sides.items():
        exact = answers.decisions == labels
        exact = exact.all(axis=1) if exact.ndim == 2 else exact
        measured.proportion(side, "accuracy", int(exact.sum()), len(labels))
    if plan.task == "multilabel":
        right = {side: {"hamming_accuracy": (s.decisions == labels).mean(axis=1)} for side, s in scores.sides.items()}
        measured.means(right, bootstrap)
    else:
        count = len(plan.classes)
        matrices = {side: _confuse(labels, s.decisions, count).tolist() for side, s in scores.sides.items()}
        measured.confusion = Confusion(tuple(plan.classes), **matrices)
        measured.calibration = {}
    _count(scores, measured, bootstrap)
    if plan.scale != "decision":
        measure_areas(scores, measured, bootstrap)
        measured.means({side: _measure_losses(labels, s, plan) for side, s in scores.sides.items()}, bootstrap)
        _calibrate(scores, measured, bootstrap)


def _confuse(labels: Array, decisions: Array, count: int) -> Array:
    """How often each class (a row) was taken for each (a column)."""
    known = (labels >= 0) & (labels < count) & (decisions >= 0) & (decisions < count)
    places = labels[known].astype(np.int64) * count + decisions[known].astype(np.int64)
    return np.bincount(places, minlength=count * count).reshape(count, count)


def _count(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Everything that follows from how many examples of a class there are, are decided for, and rightly so."""
    plan, width = scores.plan, len(scores.plan.classes)
    cells = {side: _assign_cells(scores.labels, answers.decisions, plan) for side, answers in scores.sides.items()}
    sums = {side: np.hstack([bootstrap.sums(part, None, width) for part in mine]) for side, mine in cells.items()}
    counts = Resampled(bootstrap, sums)
    for side in sums:
        _measure_classes(measured, side, counts, plan)
    for metric, (rate, average) in _list_averages(plan).items():
        interval = plan.task != "multilabel" or average == "macro"
        measured.estimate(metric, counts, average_classes(rate, average, plan), interval=interval)


def _assign_cells(labels: Array, decisions: Array, plan: Plan) -> tuple[Array, Array, Array]:
    """The classes that are rightly decided for, decided for, and true; −1 for none."""
    width = len(plan.classes)
    if plan.task != "multilabel":
        return np.where(decisions == labels, labels, -1), np.where(decisions < width, decisions, -1), labels
    chosen = (labels & decisions, decisions, labels)
    right, decided, true = (np.where(matrix == 1, np.arange(width), -1) for matrix in chosen)
    return right, decided, true


def _measure_classes(measured: Measured, side: str, counts: Resampled, plan: Plan) -> None:
    right, decided, support = np.split(counts.whole[side][0].astype(int), 3)
    rates = compute_rates(right, decided, support)
    f1 = compute_rates(*np.split(counts.replicates[side], 3, axis=1))["f1"]
    for k, name in enumerate(plan.classes):
        entry = measured.per_class.setdefault(name, {"support": int(support[k])})
        entry[side] = {rate: float(values[k]) for rate, values in rates.items()}
        measured.of_class(name, side, "recall", bound_proportion(right[k], support[k])[1:])
        measured.of_class(name, side, "precision", bound_proportion(right[k], decided[k])[1:])
        measured.of_class(name, side, "f1", bound_middle(f1[:, k]))
    if plan.task == "binary":
        p = plan.positive
        measured.proportion(side, "precision", right[p], decided[p])
        measured.proportion(side, "recall", right[p], support[p])


def compute_rates(right: Array, decided: Array, support: Array) -> dict[str, Array]:
    """Precision, recall and F1 of each class."""
    return {
        "precision": right / np.maximum(decided, 1),
        "recall": right / np.maximum(support, 1),
        "f1": 2 * right / np.maximum(decided + support, 1),
    }


def _list_averages(plan: Plan) -> dict[str, tuple[str, str]]:
    """Metric → the rate, and how its values for the classes are averaged."""
    if plan.task == "multilabel":
        kinds = {"macro": "", "micro": "_micro", "weighted": "_weighted"}
        return {f"{rate}{suffix}": (rate, kind) for kind, suffix in kinds.items() for rate in RATES}
    kinds = {"positive": ""} if plan.task == "binary" else {"macro": "", "weighted": "_weighted"}
    rates = {f"{rate}{suffix}": (rate, kind) for rate in RATES for kind, suffix in kinds.items()}
    return {"accuracy": ("recall", "micro"), **rates, "balanced_accuracy": ("recall", "present")}


def average_classes(rate: str, average: str, plan: Plan) -> Statistic:
    """A statistic of rows of (right, decided, support) per class, averaged as scikit-learn does."""

    def statistic(sums: Sums) -> Floats:
        right, decided, support = np.split(sums, 3, axis=1)
        if average == "micro":
            right, decided, support = (part.sum(axis=1, keepdims=True) for part in (right, decided, support))
        values = compute_rates(right, decided, support)[rate]
        weights = {
            "micro": np.ones_like(right),
            # A class that is only ever wrongly decided for counts.
            "macro": (support > 0) | (decided > 0) | (plan.task == "multilabel"),
            "present": support > 0,
            "weighted": support,
            "positive": np.arange(right.shape[1]) == plan.positive,
        }[average]
        return np.asarray((values * weights).sum(axis=1) / np.maximum(np.atleast_2d(weights).sum(axis=1), 1))

    return statistic


def _measure_losses(labels: Array, answers: Side, plan: Plan) -> dict[str, Array]:
    """Log-loss and Brier's score of every example."""
    if answers.scores is None:
        assert answers.true is not None  # kept where scores are not
        assert answers.square is not None
        true, square = answers.true.astype(np.float64), answers.square.astype(np.float64)
    else:
        p = to_probabilities(answers.scores, plan)
        if plan.task == "multiclass":
            true = p[np.arange(len(p)), labels]
            square = (p**2).sum(axis=1) - 2.0 * true + 1.0
        else:
            positive = labels == plan.positive
            true, square = np.where(positive, p, 1.0 - p), (p - positive) ** 2
    # One example that is surely wrong would make the mean infinite.
    losses = {"log_loss": -np.log(np.clip(true, 1e-15, 1.0)), "brier": square}
    return {name: values.mean(axis=1) if values.ndim == 2 else values for name, values in losses.items()}


def _read_confidence(labels: Array, answers: Side, plan: Plan) -> tuple[Array, Array]:
    """What calibration compares: a probability, and whether it came true.

    For a multiclass task the probability of the decision, else those of the positive class or of each label.
    """
    if answers.scores is None:
        assert answers.confidence is not None  # kept where scores are not
        return answers.confidence.astype(np.float64), answers.decisions == labels
    p = to_probabilities(answers.scores, plan)
    return (p.max(axis=1), answers.decisions == labels) if plan.task == "multiclass" else (p, labels == plan.positive)


def _calibrate(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """How far probabilities are from how often they come true, all labels together, and per bin that is not empty."""
    sums = {}
    for side, answers in scores.sides.items():
        p, hit = _read_confidence(scores.labels, answers, scores.plan)
        with np.errstate(invalid="ignore"):
            places = np.clip((p * CALIBRATION_BINS).astype(np.int64), 0, CALIBRATION_BINS - 1)
        cells = np.where(np.isfinite(p), places, -1)
        parts = [bootstrap.sums(cells, w, CALIBRATION_BINS) for w in (None, p, hit.astype(np.float64))]
        sums[side] = np.concatenate(parts, axis=1)
    counts = Resampled(bootstrap, sums)
    measured.estimate("ece", counts, estimate_error)
    measured.calibration = {
        side: tuple(Bin(int(n), float(p / n), float(hit / n)) for n, p, hit in whole.reshape(3, -1).T if n)
        for side, whole in counts.whole.items()
    }


def estimate_error(sums: Sums) -> Floats:
    """Rows of (count, sum of probabilities, sum of hits) per bin → expected calibration error."""
    count, p, hit = np.split(sums, 3, axis=1)
    return np.asarray(np.abs(p - hit).sum(axis=1) / np.maximum(count.sum(axis=1), 1))
