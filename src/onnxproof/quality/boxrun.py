"""Both sides on images whose answers are sets of boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onnxproof.errors import FindingError
from onnxproof.findings import found
from onnxproof.parity.boxes import Boxes
from onnxproof.parity.comparison import find_roundoff, measure_unexplained
from onnxproof.parity.sets import Matched, match_sets
from onnxproof.parity.truth import Effort, Truth
from onnxproof.quality.accumulate import SIDES
from onnxproof.quality.engine import Engine
from onnxproof.quality.rows import Batch
from onnxproof.quality.shardrun import ShardRun
from onnxproof.quality.task import Plan
from onnxproof.request.request import Limits
from onnxproof.tensors.arrays import Array

# Images of a shard that the float64 truth is asked about, and legal roundings of each.
EXAMINED_IMAGES, SAMPLES = 32, 8
# Units in the last place below which a difference is rounding, whatever the model.
NOTABLE = 64.0


class BoxRun(ShardRun):
    """The boxes of every image, on both sides and in the data."""

    def __init__(self, engine: Engine, plan: Plan, start: int) -> None:
        super().__init__(engine, plan, start)
        self._far: dict[str, dict[str, Any]] = {}

    def _examine(self) -> Mapping[str, Any]:
        return self._far

    def _take(self, batch: Batch) -> None:
        names = self._plan.boxes
        assert names is not None  # that is what this run is for
        answers = self._answer(batch)
        self._keep("labels", np.zeros(batch.rows))
        given = [rows[rows[:, 4] >= 0] for rows in batch.labels]
        self._keep_boxes("truth", batch.start, given)
        for side, outputs in answers.items():
            self._keep_boxes(side, batch.start, [_to_rows(boxes) for boxes in names.read(outputs)])
        matched = match_sets(answers["baseline"], answers["candidate"], names)
        if matched is None:
            shapes = ({n: list(answers[side][n].shape) for n in names.members} for side in SIDES)
            raise FindingError(found("OX518", "the boxes have different forms: {}, {}".format(*shapes)))
        self._look(batch, matched, answers)

    def _keep_boxes(self, side: str, start: int, images: list[Array]) -> None:
        """Rows of corners, score and label (of corners and label in the data), and the image that each is of."""
        self._keep(f"{side}_boxes", np.concatenate(images))
        self._keep(f"{side}_image", start + np.repeat(np.arange(len(images)), [len(rows) for rows in images]))

    def _look(self, batch: Batch, matched: Matched, answers: Mapping[str, Mapping[str, Array]]) -> None:
        """What differs in this batch, and whether rounding explains it."""
        alone = [*_list_alone(matched)]
        self._flipped += len(alone)
        own, theirs = matched.both(answers["candidate"])
        apart = self._compare({"baseline": _join(own), "candidate": _join(theirs)})
        unit = float(np.finfo(np.float32).eps) * max(
            (float(np.abs(a).max(initial=0.0)) for a in own.values()), default=0.0
        )
        if self._examined >= EXAMINED_IMAGES or not (alone or apart.max(initial=0.0) > NOTABLE * unit):
            self._flips += [self._tell(batch, *one, None) for one in alone]
            return
        self._examined += batch.rows
        truth = Truth(self._engine.eager, self._engine.double, Limits(), Effort(samples=(SAMPLES,)))
        exact = truth.of(batch.inputs)
        unexplained = matched.find_unexplained(truth.wide_samples(batch.inputs, exact))
        self._flips += [self._tell(batch, *one, one[:3] not in unexplained) for one in alone]
        if not len(apart):
            return
        samples = [truth.sample(batch.inputs, seed, exact is not None) for seed in range(1, SAMPLES + 1)]
        aligned = [matched.align(sample) for sample in samples if sample is not None]
        centre = own if exact is None else matched.align(exact)
        times = max(
            measure_unexplained(
                own[n], theirs[n], centre[n], [a[n] for a in aligned] + [own[n]], find_roundoff(own[n].dtype)
            )
            for n in own
            if own[n].dtype.kind == "f"
        )
        self._far[str(batch.start)] = {"id": batch.name(0), "difference": float(apart.max()), "times_rounding": times}

    def _tell(
        self, batch: Batch, side: str, image: int, at: int, boxes: Boxes, explained: bool | None
    ) -> dict[str, Any]:
        """A box that only one side has."""
        there = {f"{side}": self._name_decision(boxes.labels[at]), f"{side}_score": float(boxes.scores[at])}
        place = [round(float(corner), 4) for corner in boxes.corners[at]]
        empty = dict.fromkeys(SIDES)
        about = {"id": batch.name(image), "row": batch.start + image, "label": None, "place": place}
        return {**about, **empty, **there, "explained": explained}


def _list_alone(matched: Matched) -> Iterator[tuple[str, int, int, Boxes]]:
    """Boxes without a partner: side, image, place, and all boxes of that side and image."""
    for side, image, at in matched.list_alone():
        yield side, image, at, (matched.boxes if side == "baseline" else matched.theirs)[image]


def _to_rows(boxes: Boxes) -> Array:
    return np.column_stack([boxes.corners, boxes.scores, boxes.labels])


def _join(members: Mapping[str, Array]) -> Array:
    """All numbers of some boxes."""
    return np.concatenate([a.reshape(-1).astype(np.float64) for a in members.values() if a.dtype.kind == "f"])
