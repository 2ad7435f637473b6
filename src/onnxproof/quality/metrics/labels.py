"""Several labels per example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from onnxproof.quality.accumulate import Scores, Side
from onnxproof.quality.intervals import Bootstrap, Sums, paired, wilson
from onnxproof.quality.metrics.classes import (
    CALIBRATION_BINS,
    bins,
    class_f1_intervals,
    count_statistics,
    expected_error,
)
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.resampled import AUC_CLASSES, area_intervals, mean_intervals
from onnxproof.quality.task import Plan, probabilities
from onnxproof.quality.thresholds import Sweep

Array = NDArray[Any]
CHEAP = 500_000
"""Scores up to which calibration gets an interval."""


def of_labels(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels.astype(np.int64), scores.plan
    vectors: dict[str, dict[str, Array]] = {}
    for side, answers in scores.sides.items():
        decisions = answers.decisions.astype(np.int64)
        exact = (decisions == labels).all(axis=1)
        measured.proportion(side, "accuracy", int(exact.sum()), len(labels))
        measured.put(side, "hamming_accuracy", float((decisions == labels).mean()))
        for average in ("macro", "micro", "weighted"):
            values = sk.precision_recall_fscore_support(labels, decisions, average=average, zero_division=0)
            for name, value in zip(("precision", "recall", "f1"), values[:3], strict=True):
                measured.put(side, name if average == "macro" else f"{name}_{average}", float(value))
        vectors[side] = _label_losses(labels, answers, plan)
        for name, values in vectors[side].items():
            measured.put(side, name, float(np.nanmean(values)))
        _per_label(measured, side, labels, decisions, answers, plan)
    mean_intervals(np.ones(len(labels), bool), vectors, measured, bootstrap)
    _calibration(scores, labels, measured, bootstrap)
    _label_intervals(scores, labels, measured, bootstrap)


def _calibration(scores: Scores, labels: Array, measured: Measured, bootstrap: Bootstrap) -> None:
    """How far probabilities are from how often they come true, all labels together; with an interval where that is cheap."""
    totals, reliability = {}, {}
    for side, answers in scores.sides.items():
        assert answers.scores is not None  # always kept for this task
        p = probabilities(answers.scores, scores.plan)
        cells = bins(p)
        known = cells >= 0
        parts: list[Sums] = [
            np.asarray(np.bincount(cells[known], weights[known], CALIBRATION_BINS), np.float64)
            for weights in (np.ones_like(p), p, labels.astype(np.float64))
        ]
        measured.put(side, "ece", float(expected_error(np.concatenate(parts)[None])[0]))
        count, sure, true = parts
        reliability[side] = [
            {"count": int(n), "confidence": float(s / n), "accuracy": float(t / n)}
            for n, s, t in zip(count, sure, true, strict=True)
            if n
        ]
        if p.size <= CHEAP:
            sums = [
                bootstrap.sums(np.zeros(len(p), np.int64), np.where(cells == b, weights, 0.0).sum(axis=1), 1)
                for weights in (np.ones_like(p), p, labels.astype(np.float64))
                for b in range(CALIBRATION_BINS)
            ]
            totals[side] = bootstrap.totals(np.concatenate(sums, axis=1))
    measured.calibration = reliability
    if totals:
        measured.bootstrapped("ece", paired(totals, expected_error))


def _label_losses(labels: Array, answers: Side, plan: Plan) -> dict[str, Array]:
    assert answers.scores is not None  # always kept for this task
    p = probabilities(answers.scores, plan)
    true = np.clip(np.where(labels == 1, p, 1.0 - p), 1e-15, 1.0)
    right = (answers.decisions == labels).mean(axis=1)
    return {
        "log_loss": -np.log(true).mean(axis=1),
        "brier": ((p - labels) ** 2).mean(axis=1),
        "hamming_accuracy": right,
    }


def _per_label(measured: Measured, side: str, labels: Array, decisions: Array, answers: Side, plan: Plan) -> None:
    assert answers.scores is not None  # always kept for this task
    areas = []
    for k, name in enumerate(plan.classes):
        truth, decided = labels[:, k], decisions[:, k]
        hits, support, alarms = int((truth & decided).sum()), int(truth.sum()), int(decided.sum())
        sweep = Sweep.of(answers.scores[:, k], truth == 1)
        pair = sweep.roc_auc(), sweep.average_precision()
        if not math.isnan(pair[0]):
            areas.append(pair)
        recall, precision = wilson(hits, support), wilson(hits, alarms)
        entry = measured.per_class.setdefault(name, {"support": support})
        entry[side] = {
            "precision": hits / max(alarms, 1),
            "recall": hits / max(support, 1),
            "f1": 2 * hits / max(alarms + support, 1),
            "recall_low": recall.low,
            "recall_high": recall.high,
            "precision_low": precision.low,
            "precision_high": precision.high,
            "roc_auc": pair[0],
            "pr_auc": pair[1],
        }
    if areas:
        measured.put(side, "roc_auc", float(np.mean([a for a, _ in areas])))
        measured.put(side, "pr_auc", float(np.mean([b for _, b in areas])))


def _label_intervals(scores: Scores, labels: Array, measured: Measured, bootstrap: Bootstrap) -> None:
    """Macro precision, recall and F1, and the areas, from sums per label."""
    count = labels.shape[1]
    zero = np.zeros(len(labels), np.int64)

    def added(matrix: Array) -> Sums:
        return np.concatenate([bootstrap.sums(zero, matrix[:, k].astype(np.float64), 1) for k in range(count)], axis=1)

    support = added(labels)
    sums = {
        side: np.concatenate([added(labels & s.decisions), added(s.decisions), support], axis=1)
        for side, s in scores.sides.items()
    }
    statistics = count_statistics(scores.plan)
    totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
    for metric in ("precision", "recall", "f1"):
        measured.bootstrapped(metric, paired(totals, statistics[metric]))
    class_f1_intervals(scores.plan, totals, measured)
    if count <= AUC_CLASSES:
        by_class = {
            side: {k: s.scores[:, k] for k in range(count)} for side, s in scores.sides.items() if s.scores is not None
        }
        area_intervals(scores.plan.classes, {k: labels[:, k] for k in range(count)}, by_class, measured, bootstrap)
