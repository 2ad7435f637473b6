"""Boxes as sets: which box of one side is which of the other, whatever order they come in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onnxproof.tensors.arrays import Array, Arrays, Floats

# Overlap from which two boxes with one label may be the same.
SAME = 0.5
# Share of the image within which corners are at the same place.
NEAR = 1e-3
# More boxes than this are a grid, whose order is fixed, and matching them would take minutes.
MOST_BOXES = 1024
# A label weighs more than any overlap; a score decides between boxes that overlap alike.
LABEL_COST, SCORE_COST = 2.0, 0.1


@dataclass(frozen=True)
class Boxes:
    """The boxes of one image."""

    corners: Floats
    """One row of left, top, right, bottom for each."""
    scores: Floats
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class BoxNames:
    """Which outputs hold boxes, their scores and their labels, and how a box is written."""

    boxes: str
    scores: str
    labels: str | None
    layout: str
    """`xyxy`, `cxcywh` or `xywh`."""
    background: bool = False
    """Whether the last class of the scores means that there is nothing."""
    batched: bool = False
    members: tuple[str, ...] = ()
    """All outputs with an entry for each box."""

    def read(self, outputs: Arrays) -> Iterator[Boxes]:
        """The boxes of each image; of a single one where there is no batch."""
        boxes = to_corners(np.asarray(outputs[self.boxes], np.float64), self.layout)
        scores = np.asarray(outputs[self.scores], np.float64)
        labels = None if self.labels is None else outputs[self.labels]
        if not self.batched:
            boxes, scores, labels = boxes[None], scores[None], None if labels is None else labels[None]
        for image in range(len(boxes)):
            yield self._read_image(boxes[image], scores[image], None if labels is None else labels[image])

    def _read_image(self, corners: Floats, scores: Floats, labels: Array | None) -> Boxes:
        if scores.ndim == 2:  # one score for each class: the best of them decides
            if self.background:
                odds = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
                scores = (odds / odds.sum(axis=1, keepdims=True))[:, :-1]
            labels, scores = (
                (scores.argmax(axis=1), scores.max(axis=1)) if len(scores) else (None, scores[:, :0].sum(axis=1))
            )
        known = np.zeros(len(scores), np.int64) if labels is None else np.asarray(labels).reshape(-1).astype(np.int64)
        return Boxes(corners, scores, known)


def count_rows(inputs: Arrays) -> int | None:
    """How many examples the inputs have."""
    return next((len(array) for array in inputs.values() if array.ndim), None)


def find_boxes(outputs: Arrays, batch: int | None) -> BoxNames | None:
    """The outputs that together are sets of boxes; `batch`: rows of the inputs, which are no set."""
    for name, boxes in outputs.items():
        if boxes.dtype.kind != "f" or boxes.ndim not in (2, 3) or boxes.shape[-1] != 4:
            continue
        # A row for each example is an answer to it, not a member of a set.
        if boxes.ndim == 2 and batch is not None and len(boxes) == batch > 1:
            continue
        lead = boxes.shape[:-1]
        alike = {n: a for n, a in outputs.items() if n != name and a.shape[: len(lead)] == lead}
        scores = [n for n, a in alike.items() if a.dtype.kind == "f" and a.ndim in (len(lead), len(lead) + 1)]
        labels = [n for n, a in alike.items() if a.dtype.kind in "iu" and a.ndim == len(lead)]
        scores.sort(key=lambda n: (not any(word in n.lower() for word in ("score", "logit", "conf", "prob")), n))
        # Other things are rows of four numbers too: names have to say boxes, or labels be there as well.
        if scores and ("box" in name.lower() or (labels and outputs[scores[0]].ndim == len(lead))):
            background = "logit" in scores[0].lower() and outputs[scores[0]].ndim > len(lead)
            layout, named = guess_layout(name, boxes), next(iter(labels), None)
            return BoxNames(name, scores[0], named, layout, background, boxes.ndim == 3, (name, *alike))
    return None


def guess_layout(name: str, boxes: Array) -> str:
    """Corners are in order; DETR's `pred_boxes` and whatever is not in order are centre and size."""
    ordered = bool((boxes[..., 2:] >= boxes[..., :2]).all())
    return "xyxy" if ordered and not name.lower().endswith("pred_boxes") else "cxcywh"


def to_corners(boxes: Floats, layout: str) -> Floats:
    """Boxes as left, top, right, bottom."""
    if layout == "xyxy":
        return boxes
    start, size = boxes[..., :2], boxes[..., 2:]
    first = start - size / 2 if layout == "cxcywh" else start
    return np.concatenate([first, first + size], axis=-1)


def measure_overlaps(a: Floats, b: Floats) -> Floats:
    """Intersection over union of every pair; 1 for boxes that are equal, empty ones too."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.prod(np.clip(high - low, 0, None), axis=2)
    areas = [np.prod(np.clip(box[:, 2:] - box[:, :2], 0, None), axis=1) for box in (a, b)]
    union = areas[0][:, None] + areas[1][None] - common
    overlap = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return np.where((a[:, None] == b[None]).all(axis=2), 1.0, overlap)


def match_boxes(a: Boxes, b: Boxes) -> NDArray[np.int64]:
    """For each box of `a` its partner in `b`, −1 where there is none of that label that overlaps enough."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and seldom needed

    partners = np.full(len(a.scores), -1, np.int64)
    if not len(a.scores) or not len(b.scores):
        return partners
    overlap, alike = measure_overlaps(a.corners, b.corners), a.labels[:, None] == b.labels[None]
    # A sliver of a box that moves by a rounding error overlaps no longer.
    least = NEAR * max(float(np.abs(box.corners).max(initial=0.0)) for box in (a, b))
    overlap = np.where(np.abs(a.corners[:, None] - b.corners[None]).max(axis=2) <= least, 1.0, overlap)
    apart = np.minimum(np.abs(a.scores[:, None] - b.scores[None]), 1.0)
    cost = np.nan_to_num(1.0 - overlap + LABEL_COST * ~alike + SCORE_COST * apart, nan=LABEL_COST + 2.0)
    rows, columns = linear_sum_assignment(cost)
    same = alike[rows, columns] & (overlap[rows, columns] >= SAME)
    partners[rows[same]] = columns[same]
    return partners
