"""Pixels and tokens: intersection over union, F1 and accuracy, from counts of classes in every example."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap, Resampled, Sums, bound_middle
from onnxproof.quality.metrics.decisions import average_classes, compute_rates
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Floats


def measure_places(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Examples are drawn, not places: those of one example are alike."""
    plan = scores.plan
    counts = Resampled(bootstrap, {side: bootstrap.add(scores.columns[f"{side}_counts"]) for side in SIDES})
    if plan.task == "segmentation":
        measured.estimate("miou", counts, average_overlaps)
        measured.estimate("pixel_accuracy", counts, average_classes("recall", "micro", plan))
    else:
        measured.estimate("f1", counts, average_classes("f1", "macro", plan))
        measured.estimate("f1_weighted", counts, average_classes("f1", "weighted", plan))
        measured.estimate("token_accuracy", counts, average_classes("recall", "micro", plan))
    for side in SIDES:
        right, decided, support = np.split(counts.whole[side][0], 3)
        rates = {**compute_rates(right, decided, support), "iou": compute_overlaps(counts.whole[side])[0]}
        replicates = compute_overlaps(counts.replicates[side])
        for k, name in enumerate(plan.classes):
            entry = measured.per_class.setdefault(name, {"support": int(support[k])})
            entry[side] = {rate: float(values[k]) for rate, values in rates.items()}
            measured.of_class(name, side, "iou", bound_middle(replicates[:, k]))


def compute_overlaps(sums: Sums) -> Floats:
    """Rows of (right, decided, support) per class → intersection over union; NaN for a class that is nowhere."""
    right, decided, support = np.split(sums, 3, axis=1)
    union = decided + support - right
    return np.divide(right, union, out=np.full_like(right, np.nan), where=union > 0)


def average_overlaps(sums: Sums) -> Floats:
    """The mean over the classes that are somewhere."""
    overlaps = compute_overlaps(sums)
    there = np.isfinite(overlaps)
    return np.asarray(np.where(there, overlaps, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))
