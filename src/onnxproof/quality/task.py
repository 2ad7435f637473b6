"""What the scores and labels of a data set mean: the task, the classes, and the decision that follows from a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from onnxproof.errors import InputError, list_names
from onnxproof.parity.boxes import BoxNames
from onnxproof.tensors.arrays import Array, Floats

# A label that is missing, among several of an example.
UNKNOWN = 255
# Labels of places that do not count: by custom those of tokens, and those of pixels.
IGNORED = (-100, -1, 255)


@dataclass(frozen=True)
class Plan:
    """How scores and labels are read. It is made once and travels to every worker."""

    task: str
    output: str
    """The module's output that holds the scores."""
    scale: str
    """What the scores are: `probability`, `logit`, `log-probability`, `decision` (class numbers) or `value`."""
    columns: int
    classes: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()
    """The label values, in the order of the classes."""
    positive: int = 1
    threshold: float | None = None
    """Probability from which a class is decided for; None for the usual rule."""
    keep_scores: bool = True
    guessed: bool = False
    """Whether the order of the classes is that of the alphabet, because nobody gave it."""
    axis: int = 1
    """The axis of the classes, where an example has a decision for each of its places."""
    window: tuple[int, int] | None = None
    """Places along the first axis of them that are decisions, where not all are."""
    size: tuple[int, ...] = ()
    """To what maps of scores are resized, where the labels are larger; of figures, how many points of how many numbers."""
    boxes: BoxNames | None = None
    """The outputs that hold boxes."""

    @property
    def placed(self) -> bool:
        """Whether an example has a decision for each of its places: pixels, tokens, steps."""
        return self.task in ("segmentation", "tokens", "generate")

    @property
    def by_row(self) -> bool:
        """Whether there is one answer for each example."""
        return not self.placed and self.task != "detection"

    @property
    def exclusive(self) -> bool:
        """Whether a decision is for the class with the largest score."""
        return self.task == "multiclass" or self.placed

    @property
    def classification(self) -> bool:
        """Whether there are decisions."""
        return self.task in ("binary", "multiclass", "multilabel")

    @property
    def cut(self) -> float:
        """The threshold as a probability."""
        return 0.5 if self.threshold is None else self.threshold


def to_matrix(scores: Array) -> Array:
    """Scores with a column for each class."""
    return scores.reshape(len(scores), -1)


def encode(labels: Array, plan: Plan) -> Array:
    """Labels as class numbers (int32), as a 0/1 matrix (uint8), or as numbers; −1 where there is none."""
    if plan.task == "multilabel":
        matrix = to_matrix(np.asarray(labels))
        if matrix.shape[1] != len(plan.classes):
            raise InputError(
                f"--task multilabel: the labels have {matrix.shape[1]} columns and the output {plan.output} {len(plan.classes)}: expected as many"
            )
        return np.where(np.isin(matrix, (0, 1)), matrix, UNKNOWN).astype(np.uint8)
    if not plan.classification:
        return np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return np.asarray(labels.argmax(axis=1).astype(np.int32))
    flat = labels.reshape(len(labels))
    numeric = flat.dtype.kind in "fiub"
    if numeric and plan.labels == tuple(range(len(plan.labels))):
        codes = np.where(np.isfinite(flat), flat, -1).astype(np.int64)
        refuse_labels(codes[(codes >= len(plan.labels)) | (codes < -1)], plan)
        return codes.astype(np.int32)
    places = {value: i for i, value in enumerate(plan.labels)}
    known, where = np.unique(flat, return_inverse=True)
    refuse_labels([v for v in known.tolist() if v not in places and v == v and v != ""], plan)
    return np.array([places.get(v, -1) for v in known.tolist()], np.int32)[where.reshape(-1)]


def refuse_labels(wrong: Sequence[Any] | Array, plan: Plan) -> None:
    """Raise where labels belong to no class."""
    if len(wrong):
        raise InputError(
            f"a label is {wrong[0]!r}, and the classes are {list_names(plan.labels[:10])} ({plan.task}, output {plan.output}). "
            "Give --task, --labels or --classes"
        )


def select_scores(raw: Array, plan: Plan) -> Array:
    """The scores that are kept of an output: one column for a binary task (towards the positive class), else all of them."""
    if plan.placed:
        return _select_places(raw, plan)
    matrix = to_matrix(raw)
    if plan.task == "binary" and plan.scale != "decision":
        return _score_positive(matrix, plan)
    if plan.scale == "decision" or matrix.shape[1] == 1:
        return matrix[:, 0]
    return raw if plan.task == "custom" else matrix


def _select_places(raw: Array, plan: Plan) -> Array:
    """One row of scores (or one class number) for each place of each example."""
    if plan.scale == "decision":
        return raw.reshape(-1)
    if plan.size:
        import torch

        # As those who train such models do it: smaller maps are made as large as the labels, between pixels' centres.
        maps = torch.nn.functional.interpolate(torch.from_numpy(np.ascontiguousarray(raw)), plan.size, mode="bilinear")
        raw = maps.numpy()
    if plan.window is not None:
        raw = raw[:, slice(*plan.window)]
    last = np.moveaxis(raw, plan.axis, -1)
    return last.reshape(-1, last.shape[-1])


def encode_places(labels: Array, plan: Plan) -> Array:
    """Labels of places as class numbers, one row for each example; −1 where they do not count."""
    flat = labels.reshape(len(labels), -1)
    codes = np.where(np.isin(flat, IGNORED), -1, flat).astype(np.int32)
    refuse_labels(flat[(codes >= plan.columns) | (codes < -1)].tolist(), plan)
    return codes


def _score_positive(matrix: Array, plan: Plan) -> Array:
    if matrix.shape[1] == 2:
        if plan.scale == "probability":
            return matrix[:, plan.positive]
        return matrix[:, plan.positive] - matrix[:, 1 - plan.positive]
    if plan.positive == 1:
        return matrix[:, 0]
    # In float64: of a small probability, 1 − p in float32 would leave 1.
    return 1.0 - matrix[:, 0].astype(np.float64) if plan.scale == "probability" else -matrix[:, 0]


def decide(scores: Array, plan: Plan) -> Array:
    """Decisions of kept scores: class numbers, or a matrix of 0 and 1; NaN decides for nothing (−1)."""
    if plan.scale == "decision":
        return scores.astype(np.int32)
    if plan.exclusive:
        lost = np.isnan(scores).any(axis=1)
        return np.where(lost, -1, np.argmax(scores, axis=1)).astype(np.int32)
    distance = measure_margins(scores, plan)
    if plan.task == "multilabel":
        return (distance >= 0).astype(np.uint8)
    # Without a threshold of the user's, two columns are decided as argmax does: the first wins a tie.
    strict = plan.columns == 2 and plan.threshold is None and plan.positive == 1
    hit = distance > 0 if strict else distance >= 0
    return np.where(np.isnan(distance), -1, np.where(hit, plan.positive, 1 - plan.positive)).astype(np.int32)


def measure_margins(scores: Array, plan: Plan) -> Floats:
    """How far scores are from the threshold, on the scores' own scale."""
    return np.asarray(scores, np.float64) - scale_threshold(plan.cut, plan)


def scale_threshold(probability: float, plan: Plan) -> float:
    """A probability as a value on the scale of the kept scores."""
    return float(probability if plan.scale == "probability" else logit(probability))


def to_probabilities(scores: Array, plan: Plan) -> Floats:
    """Kept scores as probabilities: of the positive class for a binary task, else one column per class."""
    wide = np.asarray(scores, np.float64)
    if plan.scale == "probability":
        return wide
    return np.asarray(softmax(wide, axis=1) if plan.task == "multiclass" else expit(wide))


def contradicts(scores: Array, plan: Plan) -> bool:
    """Whether scores that were taken for probabilities turn out to be none."""
    if plan.scale != "probability" or not plan.classification:
        return False
    finite = scores[np.isfinite(scores)]
    return bool(finite.size and ((finite < -1e-6).any() or (finite > 1 + 1e-3).any()))
