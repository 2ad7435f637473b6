"""Metrics of both sides, per class and averaged, each with its interval."""

from __future__ import annotations

from onnxproof.quality.accumulate import Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.classes import of_classes
from onnxproof.quality.metrics.labels import of_labels
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.numbers import of_numbers
from onnxproof.quality.metrics.own import custom

__all__ = ["Measured", "custom", "measure"]


def measure(scores: Scores, seed: int = 0) -> Measured:
    """Everything that can be said about these scores without a custom metric."""
    measured = Measured()
    if not scores.n or scores.plan.task == "custom":
        return measured
    bootstrap = Bootstrap(len(scores.labels), seed)
    if scores.plan.task == "regression":
        of_numbers(scores, measured, bootstrap)
    elif scores.plan.task == "multilabel":
        of_labels(scores, measured, bootstrap)
    else:
        of_classes(scores, measured, bootstrap)
    return measured
