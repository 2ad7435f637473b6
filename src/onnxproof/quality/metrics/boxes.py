"""Average precision of boxes, as COCO defines it: 101 recalls, overlaps from 0.5 to 0.95, a hundred boxes per image and class.

The usual package for it needs a compiler on some platforms and has no weights of images, which a bootstrap is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onnxproof.parity.boxes import measure_overlaps
from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Array, Floats

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
MOST_BOXES = 100
# Draws of the bootstrap: each is a pass over all boxes.
REPLICATES = 200


@dataclass(frozen=True)
class Ranked:
    """The boxes of one class, the surest first."""

    image: NDArray[np.int64]
    hits: NDArray[np.bool_]
    """Overlap × box: whether it is the box of a true one that no surer box has."""
    truths: Floats
    """True boxes of each image."""


def measure_boxes(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Means over the classes that the data have, with intervals over images."""
    weights = bootstrap.weigh(scores.n)[:REPLICATES]
    true, of_true = scores.columns["truth_boxes"], scores.columns["truth_image"]
    replicates: dict[str, dict[str, Floats]] = {"map": {}, "map_50": {}, "map_75": {}}
    for side in SIDES:
        boxes, images = scores.columns[f"{side}_boxes"], scores.columns[f"{side}_image"]
        whole, drawn = [], []
        for k, name in enumerate(scores.plan.classes):
            mine, given = boxes[:, 5] == k, true[:, 4] == k
            entry = measured.per_class.setdefault(name, {"support": int(given.sum())})
            entry[side] = {}
            if not given.any():
                continue
            ranked = rank_boxes(boxes[mine], images[mine], true[given], of_true[given], scores.n)
            whole.append(average_precision(ranked, np.ones(scores.n)))
            drawn.append([average_precision(ranked, draw) for draw in weights])
            entry[side] = {"ap": float(whole[-1].mean()), "ap_50": float(whole[-1][0])}
        if whole:
            mean, spread = np.mean(whole, axis=0), np.mean(drawn, axis=0)
            for metric, of in (("map", slice(None)), ("map_50", slice(0, 1)), ("map_75", slice(5, 6))):
                measured.put(side, metric, float(mean[of].mean()))
                replicates[metric][side] = spread[:, of].mean(axis=1)
    for metric, sides in replicates.items():
        measured.bootstrapped(metric, sides)


def rank_boxes(boxes: Array, images: Array, true: Array, of_true: Array, n: int) -> Ranked:
    """Which boxes are right: the surest first, each takes the true box that it overlaps most and that is free."""
    found = [*_match_images(boxes, images, true, of_true)]
    scores = np.concatenate([boxes[at, 4] for at, _ in found]) if found else np.zeros(0)
    order = np.argsort(-scores, kind="stable")
    image = np.concatenate([images[at] for at, _ in found])[order] if found else np.zeros(0, np.int64)
    hits = np.concatenate([hit for _, hit in found], axis=1)[:, order] if found else np.zeros((len(OVERLAPS), 0), bool)
    return Ranked(image.astype(np.int64), hits, np.bincount(of_true.astype(np.int64), minlength=n).astype(np.float64))


def _match_images(boxes: Array, images: Array, true: Array, of_true: Array) -> Iterator[tuple[Array, Array]]:
    for image in np.unique(images):
        mine = np.flatnonzero(images == image)
        mine = mine[np.argsort(-boxes[mine, 4], kind="stable")][:MOST_BOXES]
        overlaps = measure_overlaps(boxes[mine, :4], true[of_true == image, :4])
        yield mine, np.array([_take_true(overlaps, least) for least in OVERLAPS])


def _take_true(overlaps: Floats, least: float) -> NDArray[np.bool_]:
    hits = np.zeros(len(overlaps), bool)
    free = np.array(overlaps)
    for box in np.flatnonzero((overlaps >= least).any(axis=1)):
        place = int(free[box].argmax())
        if free[box, place] >= least:
            hits[box] = True
            free[:, place] = -1.0
    return hits


def average_precision(ranked: Ranked, weights: Floats) -> Floats:
    """One number for each overlap, with images that count as often as their weights say; NaN-free: 0 without a true box."""
    total = float(ranked.truths @ weights)
    if not total or not len(ranked.image):
        return np.zeros(len(OVERLAPS))
    drawn = weights[ranked.image]
    hits, all_boxes = np.cumsum(ranked.hits * drawn, axis=1), np.cumsum(drawn)
    precision = hits / np.maximum(all_boxes, np.finfo(np.float64).tiny)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    padded = np.concatenate([best, np.zeros((len(best), 1))], axis=1)
    places = (np.searchsorted(recall, RECALLS, side="left") for recall in hits / total)
    return np.array([row[at].mean() for row, at in zip(padded, places, strict=True)])
