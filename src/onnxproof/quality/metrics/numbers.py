"""Regression."""

from __future__ import annotations

import numpy as np

from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Scores
from onnxproof.quality.intervals import Bootstrap, Resampled, Statistic, Sums
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Array


def measure_numbers(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels = scores.labels.astype(np.float64).reshape(scores.n, -1)
    sums = {}
    for side, answers in scores.sides.items():
        assert answers.scores is not None  # always kept for this task
        given = answers.scores.astype(np.float64).reshape(scores.n, -1)
        if given.shape != labels.shape:
            raise InputError(
                f"the scores have {given.shape[1]} columns and the labels {labels.shape[1]}: expected as many"
            )
        errors = labels - given
        mae = float(np.abs(errors).mean())
        measured.put(side, "mae", mae)
        measured.put(side, "rmse", float(np.sqrt((errors**2).mean())))
        if len(labels) > 1 and np.ptp(labels, axis=0).all():  # of labels that never change nothing can be explained
            measured.put(side, "r2", float(np.mean(1.0 - (errors**2).mean(axis=0) / labels.var(axis=0))))
        if labels.any():
            measured.put(side, "relative_error", mae / float(np.abs(labels).mean()))
        sums[side] = _sum_errors(labels, given, bootstrap)
    counts = Resampled(bootstrap, sums)
    for metric, statistic in _ERRORS.items():
        if metric in measured.values["baseline"]:
            measured.bootstrapped(metric, {side: statistic(mine) for side, mine in counts.replicates.items()})


def _sum_errors(labels: Array, given: Array, bootstrap: Bootstrap) -> Sums:
    """Per block: count, |error|, error², |label|, label, label²; means over columns."""
    cells = np.zeros(len(labels), np.int64)
    error = given - labels
    numbers = (np.ones(len(labels)), np.abs(error), error**2, np.abs(labels), labels, labels**2)
    return np.concatenate([bootstrap.sums(cells, v if v.ndim == 1 else v.mean(axis=1), 1) for v in numbers], axis=1)


_ERRORS: dict[str, Statistic] = {
    "mae": lambda s: np.asarray(s[:, 1] / np.maximum(s[:, 0], 1)),
    "rmse": lambda s: np.asarray(np.sqrt(s[:, 2] / np.maximum(s[:, 0], 1))),
    "relative_error": lambda s: np.asarray(s[:, 1] / np.maximum(s[:, 3], 1e-300)),
    "r2": lambda s: 1.0 - s[:, 2] / np.maximum(s[:, 5] - s[:, 4] ** 2 / np.maximum(s[:, 0], 1), 1e-300),
}
