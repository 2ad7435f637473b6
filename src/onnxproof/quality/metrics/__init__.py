"""Metrics of both sides, per class and averaged, each with its interval."""

from __future__ import annotations

from onnxproof.quality.accumulate import Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.boxes import measure_boxes
from onnxproof.quality.metrics.decisions import measure_decisions
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.neighbours import measure_neighbours
from onnxproof.quality.metrics.numbers import measure_numbers
from onnxproof.quality.metrics.places import measure_places
from onnxproof.quality.metrics.points import measure_points
from onnxproof.quality.metrics.ranks import measure_ranks
from onnxproof.quality.metrics.texts import measure_texts

MEASURES = {
    "regression": measure_numbers,
    "segmentation": measure_places,
    "tokens": measure_places,
    "detection": measure_boxes,
    "embedding": measure_neighbours,
    "ranking": measure_ranks,
    "keypoints": measure_points,
    "generate": measure_texts,
}


def measure(scores: Scores, seed: int = 0) -> Measured:
    """Everything that can be said about these scores without a custom metric."""
    measured = Measured()
    if scores.n and scores.plan.task != "custom":
        of_examples = MEASURES.get(scores.plan.task, measure_decisions)
        of_examples(scores, measured, Bootstrap(scores.n, seed))
    return measured
