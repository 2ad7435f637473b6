"""Intervals of means and of areas under curves, from a paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.quality.intervals import Bootstrap, paired, percentile
from onnxproof.quality.metrics.measured import Measured

Array = NDArray[Any]
AUC_BINS = 1024
AUC_CLASSES = 32
"""Classes up to which areas under curves get intervals."""


def mean_intervals(
    known: Array, values: Mapping[str, Mapping[str, Array]], measured: Measured, bootstrap: Bootstrap
) -> None:
    """Intervals of means of numbers per example."""
    for name in next(iter(values.values()), {}):
        sums = {}
        for side, mine in values.items():
            fine = known & np.isfinite(mine[name])
            cells = np.where(fine, 0, -1)
            sums[side] = np.concatenate([bootstrap.sums(cells, mine[name], 1), bootstrap.sums(cells, None, 1)], axis=1)
        totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
        measured.bootstrapped(name, paired(totals, lambda s: np.asarray(s[:, 0] / np.maximum(s[:, 1], 1))))


def area_intervals(
    classes: Sequence[str],
    truths: Mapping[int, Array],
    by_class: Mapping[str, Mapping[int, Array]],
    measured: Measured,
    bootstrap: Bootstrap,
) -> None:
    """Areas under curves of every replicate, for each class and averaged over them."""
    totals: dict[str, dict[str, list[Array]]] = {side: {"roc_auc": [], "pr_auc": []} for side in by_class}
    bins = AUC_BINS if len(truths) == 1 else 128
    for k, truth in truths.items():
        if not (truth == 1).any() or not (truth == 0).any():
            continue
        for side, mine in by_class.items():
            places, width = _ranked(mine[k], bins)
            cells = np.where((truth >= 0) & (places >= 0), places * 2 + np.maximum(truth, 0), -1)
            replicates = bootstrap.totals(bootstrap.sums(cells, None, 2 * width)).reshape(-1, width, 2)
            for name, area in (("roc_auc", _roc_area), ("pr_auc", _pr_area)):
                values = area(replicates[:, :, 1], replicates[:, :, 0])
                totals[side][name].append(values)
                measured.of_class(classes[k], side, name, percentile(values))
    for name in ("roc_auc", "pr_auc"):
        means = {side: np.mean(mine[name], axis=0) for side, mine in totals.items() if mine[name]}
        ends = {side: percentile(values) for side, values in means.items()}
        if len(means) == 2:
            ends["difference"] = percentile(means["candidate"] - means["baseline"])
        measured.bootstrapped(name, ends)


def _ranked(scores: Array, bins: int) -> tuple[Array, int]:
    """Scores as numbers of bins that hold about equally many, in ascending order; −1 for NaN."""
    known = ~np.isnan(scores)
    finite = scores[known]
    step = max(1, len(finite) // 200_000)
    edges = np.unique(np.quantile(finite[::step], np.linspace(0, 1, bins + 1)[1:-1])) if finite.size else np.zeros(0)
    values = np.unique(finite) if len(finite) <= bins else None
    edges = (values[1:] if values is not None and len(values) else edges).astype(scores.dtype)
    places = np.full(len(scores), -1, np.int64)
    places[known] = np.searchsorted(edges, finite, side="right")
    return places, len(edges) + 1


def _roc_area(positive: Array, negative: Array) -> Array:
    below = np.cumsum(negative, axis=1) - negative
    top = (positive * (below + negative / 2)).sum(axis=1)
    bottom = positive.sum(axis=1) * negative.sum(axis=1)
    return np.asarray(np.where(bottom > 0, top / np.maximum(bottom, 1), np.nan))


def _pr_area(positive: Array, negative: Array) -> Array:
    hits, alarms = np.cumsum(positive[:, ::-1], axis=1), np.cumsum(negative[:, ::-1], axis=1)
    precision = hits / np.maximum(hits + alarms, 1)
    total = positive.sum(axis=1)
    return np.asarray(np.where(total > 0, (positive[:, ::-1] * precision).sum(axis=1) / np.maximum(total, 1), np.nan))
