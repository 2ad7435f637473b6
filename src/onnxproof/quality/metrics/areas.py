"""Areas under curves of both sides, for each class and averaged over them, with intervals."""

from __future__ import annotations

import math

import numpy as np

from onnxproof.quality.accumulate import Scores, Side
from onnxproof.quality.intervals import Bootstrap, bound_middle
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.task import Plan, to_probabilities
from onnxproof.quality.thresholds import Sweep
from onnxproof.tensors.arrays import Array

AUC_BINS = 1024
# Classes up to which areas under curves get intervals.
AUC_CLASSES = 32


def measure_areas(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Of all examples, and of every replicate where there are few classes."""
    plan = scores.plan
    replicates: dict[str, dict[str, list[Array]]] = {"roc_auc": {}, "pr_auc": {}}
    for side, answers in scores.sides.items():
        areas = []
        toward = _split_classes(answers, plan)
        bins = AUC_BINS if len(toward) == 1 else 128
        for k, mine in toward.items():
            truth = scores.labels[:, k] == 1 if scores.labels.ndim == 2 else scores.labels == k
            # scikit-learn refuses the infinite scores that masks leave, and would sort twice.
            sweep = Sweep.of(mine, truth)
            pair = {"roc_auc": sweep.roc_auc(), "pr_auc": sweep.average_precision()}
            measured.per_class[plan.classes[k]][side] |= pair
            if math.isnan(pair["roc_auc"]):
                continue
            areas.append(pair)
            if len(plan.classes) <= AUC_CLASSES:
                for name, values in _resample(mine, truth, bins, bootstrap).items():
                    replicates[name].setdefault(side, []).append(values)
                    measured.of_class(plan.classes[k], side, name, bound_middle(values))
        for name in replicates if areas else ():
            measured.put(side, name, float(np.mean([pair[name] for pair in areas])))
    for name, sides in replicates.items():
        measured.bootstrapped(name, {side: np.mean(values, axis=0) for side, values in sides.items()})


def _split_classes(answers: Side, plan: Plan) -> dict[int, Array]:
    """Class → scores toward it, for the classes that have scores."""
    if answers.scores is None:
        return {}
    if plan.task == "binary":
        return {plan.positive: answers.scores}
    # Areas under curves compare classes across rows: logits have to become probabilities first.
    matrix = answers.scores if plan.task == "multilabel" else to_probabilities(answers.scores, plan).astype(np.float32)
    return dict(enumerate(matrix.T))


def _resample(scores: Array, truth: Array, bins: int, bootstrap: Bootstrap) -> dict[str, Array]:
    """The areas of every replicate, from scores in bins."""
    places, width = _bin_scores(scores, bins)
    counts = bootstrap.totals(bootstrap.sums(np.where(places >= 0, places * 2 + truth, -1), None, 2 * width))
    negative, positive = np.moveaxis(counts.reshape(-1, width, 2), 2, 0)
    return {"roc_auc": _measure_roc_area(positive, negative), "pr_auc": _measure_pr_area(positive, negative)}


def _bin_scores(scores: Array, bins: int) -> tuple[Array, int]:
    """Scores as numbers of bins that hold about equally many, in ascending order; −1 for NaN."""
    known = ~np.isnan(scores)
    finite = scores[known]
    if len(finite) <= bins:
        edges = np.unique(finite)[1:]
    else:
        step = max(1, len(finite) // 200_000)
        edges = np.unique(np.quantile(finite[::step], np.linspace(0, 1, bins + 1)[1:-1]))
    places = np.full(len(scores), -1, np.int64)
    places[known] = np.searchsorted(edges.astype(scores.dtype), finite, side="right")
    return places, len(edges) + 1


def _measure_roc_area(positive: Array, negative: Array) -> Array:
    below = np.cumsum(negative, axis=1) - negative
    top = (positive * (below + negative / 2)).sum(axis=1)
    bottom = positive.sum(axis=1) * negative.sum(axis=1)
    return np.asarray(np.where(bottom > 0, top / np.maximum(bottom, 1), np.nan))


def _measure_pr_area(positive: Array, negative: Array) -> Array:
    hits, alarms = np.cumsum(positive[:, ::-1], axis=1), np.cumsum(negative[:, ::-1], axis=1)
    precision = hits / np.maximum(hits + alarms, 1)
    total = positive.sum(axis=1)
    return np.asarray(np.where(total > 0, (positive[:, ::-1] * precision).sum(axis=1) / np.maximum(total, 1), np.nan))
