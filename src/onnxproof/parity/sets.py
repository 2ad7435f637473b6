"""Sets of boxes in one order: two sides that list the same boxes differently are compared box by box."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onnxproof.errors import list_names
from onnxproof.findings import Finding, Where, found
from onnxproof.parity.boxes import MOST_BOXES, Boxes, BoxNames, count_rows, find_boxes, match_boxes
from onnxproof.parity.case_run import Answers
from onnxproof.parity.comparison import compare
from onnxproof.parity.truth import Outputs, Truth
from onnxproof.proof.comparison import Comparison, SetMatch
from onnxproof.request.request import Limits
from onnxproof.tensors.arrays import Array, Arrays

Places = NDArray[np.int64]
# A side, an image of the batch, and a box of it.
Alone = tuple[str, int, int]


@dataclass(frozen=True)
class Matched:
    """Boxes of the baseline, their partners on the other side, and those that have none."""

    names: BoxNames
    baseline: Arrays
    boxes: tuple[Boxes, ...]
    """The baseline's, image by image."""
    theirs: tuple[Boxes, ...]
    partners: tuple[Places, ...]

    @property
    def kept(self) -> list[Places]:
        """Boxes of the baseline with a partner, image by image."""
        return [np.flatnonzero(mine >= 0) for mine in self.partners]

    def align(self, outputs: Arrays) -> dict[str, Array]:
        """The members of a legal answer in the baseline's order; where it lacks a box, the baseline's own."""
        own, aligned = self._take(self.baseline, self.kept), {}
        partners = [
            match_boxes(*pair)[at] for *pair, at in zip(self.boxes, self.names.read(outputs), self.kept, strict=True)
        ]
        there = np.concatenate([places >= 0 for places in partners])
        found = self._take(outputs, [places[places >= 0] for places in partners])
        for name, values in own.items():
            aligned[name] = values.astype(outputs[name].dtype)
            aligned[name][there] = found[name]
        return aligned

    def both(self, candidate: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
        """The members on both sides, in one order."""
        theirs = [mine[at] for mine, at in zip(self.partners, self.kept, strict=True)]
        return self._take(self.baseline, self.kept), self._take(candidate, theirs)

    def _take(self, outputs: Arrays, places: list[Places]) -> dict[str, Array]:
        images = {name: outputs[name] if self.names.batched else outputs[name][None] for name in self.names.members}
        return {n: np.concatenate([a[i][at] for i, at in enumerate(places)]) for n, a in images.items()}

    def list_alone(self) -> list[Alone]:
        """Boxes without a partner."""
        missing = [
            ("baseline", i, at) for i, mine in enumerate(self.partners) for at in np.flatnonzero(mine < 0).tolist()
        ]
        left = (
            np.setdiff1d(np.arange(len(b.scores)), mine) for mine, b in zip(self.partners, self.theirs, strict=True)
        )
        return missing + [("candidate", i, at) for i, places in enumerate(left) for at in places.tolist()]

    def find_unexplained(self, legal: Iterable[Arrays]) -> set[Alone]:
        """Boxes on one side only that no legal rounding adds or takes away."""
        open_still = set(self.list_alone())
        answers = iter(legal)
        while open_still and (answer := next(answers, None)) is not None:
            sets = list(self.names.read(answer))
            absent = [match_boxes(*pair) < 0 for pair in zip(self.boxes, sets, strict=True)]
            present = [match_boxes(*pair) >= 0 for pair in zip(self.theirs, sets, strict=True)]
            shown = {"baseline": absent, "candidate": present}
            open_still = {(side, i, at) for side, i, at in open_still if not shown[side][i][at]}
        return open_still

    def judge(self, legal: Iterable[Arrays]) -> SetMatch:
        """How the sets differ, and what of it rounding does not decide."""
        sides = [side for side, *_ in self.list_alone()]
        moved = sum(int((mine[at] != at).sum()) for mine, at in zip(self.partners, self.kept, strict=True))
        pairs, unexplained = sum(map(len, self.kept)), len(self.find_unexplained(legal))
        return SetMatch(pairs, moved, sides.count("baseline"), sides.count("candidate"), unexplained)


def tell_sets(baseline: Outputs, rows: int | None) -> Finding | None:
    """Which outputs are taken for sets of boxes, where some are."""
    names = find_boxes(baseline, rows)
    if names is None:
        return None
    layout = {"xyxy": "corners", "cxcywh": "centre and size", "xywh": "corner and size"}[names.layout]
    others = [name for name in names.members if name != names.boxes]
    message = f"{names.boxes} ({layout}) with {list_names(others)} are taken for sets of boxes: where their order or number differs they are matched by overlap and label"
    return found(
        "OX241",
        message,
        where=Where(output=names.boxes),
        evidence={"members": list(names.members), "layout": names.layout},
    )


def judge_sets(
    truth: Truth, limits: Limits, answers: Answers, candidate: Outputs, comparisons: list[Comparison], group: str
) -> list[Comparison]:
    """Sets of boxes that differ in order, or in a box that rounding adds or takes away, are compared box by box."""
    inputs, baseline = answers.inputs, answers.baseline
    doubtful = {c.output for c in comparisons if truth.leaves_open(c)}
    names = find_boxes(baseline, count_rows(inputs)) if doubtful else None
    alike = names is not None and doubtful & {*names.members}
    matched = match_sets(baseline, candidate, names) if names is not None and alike else None
    if matched is None:
        return comparisons
    match = matched.judge(truth.wide_samples(inputs, answers.truth))
    if match.unexplained or not match.pairs:
        return comparisons
    own, theirs = matched.both(candidate)
    aligned = [compare(name, own[name], theirs[name], atol=limits.atol, rtol=limits.rtol) for name in own]

    def sample(seed: int, doubled: bool) -> Outputs | None:
        answer = truth.sample(inputs, seed, doubled)
        return None if answer is None else matched.align(answer)

    known = None if answers.truth is None else matched.align(answers.truth)
    judged, _ = truth.judge_case(inputs, known, own, theirs, aligned, f"{group} boxes", sample=sample)
    boxes = {c.output: replace(c, matched=match) for c in judged}
    return [boxes.get(c.output, c) for c in comparisons]


def match_sets(baseline: Arrays, candidate: Arrays, names: BoxNames) -> Matched | None:
    """The boxes of both sides side by side; None where they have different forms, or there are too many."""
    if not all(name in candidate and _is_like(baseline[name], candidate[name], names) for name in names.members):
        return None
    boxes, theirs = (tuple(names.read(side)) for side in (baseline, candidate))
    if max((len(b.scores) for b in (*boxes, *theirs)), default=0) > MOST_BOXES:
        return None
    partners = tuple(match_boxes(*pair) for pair in zip(boxes, theirs, strict=True))
    return Matched(names, baseline, boxes, theirs, partners)


def _is_like(baseline: Array, candidate: Array, names: BoxNames) -> bool:
    """Whether two members differ in the number of boxes at most."""
    at = int(names.batched)
    rest = [array.shape[:at] + array.shape[at + 1 :] for array in (baseline, candidate)]
    return baseline.dtype == candidate.dtype and rest[0] == rest[1]
