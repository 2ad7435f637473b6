"""Decisions that changed, and whether rounding explains the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onnxproof.errors import Rejected
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable, nudge_inputs
from onnxproof.quality.accumulate import SIDES
from onnxproof.quality.task import Plan, measure_margins, select_scores
from onnxproof.tensors.arrays import Array, Arrays, Floats

T = TypeVar("T")
Read = Callable[[Arrays], Array]
SAMPLES = 8
# Times the farthest legal rounding, times their pooled size, and units in the last place that are always allowed.
FARTHEST, POOLED, ULPS = 4.0, 8.0, 8.0
# A baseline this many times farther from the truth than legal roundings are has another truth.
INCREDIBLE = 50.0


@dataclass(frozen=True)
class Explained:
    """Per flipped row: the baseline's margin, the margin in float64, what rounding may do to it, and the conclusion."""

    margin: Floats
    truth_margin: Floats
    allowed: Floats
    explained: NDArray[np.bool_]

    def of(self, row: int) -> dict[str, Any]:
        """What is known about one of the rows."""
        return {name: values[row].item() for name, values in vars(self).items()}


def find_changed(baseline: Array, candidate: Array) -> NDArray[np.bool_]:
    """Rows whose decision differs, in any label."""
    different = baseline != candidate
    return np.asarray(different.any(axis=1) if different.ndim == 2 else different)


def measure_margin(scores: Array, plan: Plan, decided: Array, other: Array) -> Floats:
    """How far scores prefer the first decision to the second; of several labels the one that is surest."""
    wide = np.asarray(scores, np.float64)
    if plan.scale == "decision":
        return np.where(wide == decided, 1.0, -1.0)
    if plan.exclusive:
        rows = np.arange(len(wide))
        return np.asarray(wide[rows, decided] - wide[rows, other])
    distance = measure_margins(scores, plan)
    toward = np.where(decided == plan.positive, distance, -distance)
    return np.where(decided != other, toward, -np.inf).max(axis=1) if plan.task == "multilabel" else toward


class Explainer:
    """Asks the float64 truth and its legal roundings about rows whose decision changed, or about some places of them."""

    def __init__(
        self,
        eager: EagerRunner,
        double: DoubleRunner | None,
        plan: Plan,
        places: Array | None = None,
        read: Read | None = None,
    ) -> None:
        """`read`: outputs → scores; by the plan where it is not given."""
        self._eager, self._double, self._plan, self._places = eager, double, plan, places
        self._read: Read = read or (lambda outputs: select_scores(outputs[plan.output], plan))
        self._known: dict[str, Any] | None = None
        """What was answered, where all questions are about the same inputs."""

    def explain(self, inputs: Arrays, sides: Mapping[str, Array], decisions: Mapping[str, Array]) -> Explained:
        """Some rows: the inputs, kept scores and decisions of both sides."""
        b, c = decisions["baseline"], decisions["candidate"]
        own = measure_margin(sides["baseline"], self._plan, b, c)
        theirs = measure_margin(sides["candidate"], self._plan, b, c)
        lost = ((b == -1) | (c == -1)).reshape(len(b), -1).any(axis=1)
        truth = self._score_exactly(inputs)
        samples = self._samples(inputs, doubled=truth is not None)
        centre = own if truth is None else measure_margin(truth, self._plan, b, c)
        if self._plan.scale == "decision":
            legal = [centre, *(measure_margin(s, self._plan, c, b) * -1 for s in samples)]
            explained = np.any([m <= 0 for m in legal], axis=0) & ~lost
            return Explained(own, centre, np.where(explained, 1.0, 0.0), explained)

        def allowance() -> Floats:
            spread = np.array([measure_margin(s, self._plan, b, c) - centre for s in samples]).reshape(len(samples), -1)
            return self._estimate_allowance(sides, spread, len(own))

        allowed = allowance()
        baseline_error = np.abs(own - centre)
        if truth is not None and (baseline_error > INCREDIBLE * allowed).any():
            centre, samples = own, self._samples(inputs, doubled=False)
            allowed = allowance()
        else:
            allowed = np.maximum(allowed, FARTHEST * baseline_error)
        with np.errstate(invalid="ignore"):
            explained = (np.abs(theirs - centre) <= allowed) & ~lost
        return Explained(own, centre, allowed, explained)

    def remember(self) -> Explainer:
        """The same, for questions that are all about the same inputs."""
        self._known = {}
        return self

    def at(self, places: Array) -> Explainer:
        """The same, asked about some places only."""
        other = Explainer(self._eager, self._double, self._plan, places, self._read)
        other._known = self._known
        return other

    def _once(self, what: str, answer: Callable[[], T]) -> T:
        if self._known is None:
            return answer()
        if what not in self._known:
            self._known[what] = answer()
        known: T = self._known[what]
        return known

    def times_rounding(self, inputs: Arrays, sides: Mapping[str, Array]) -> float | None:
        """The candidate's distance from the truth in units of what legal rounding may do; None where that is not known."""
        times = self.times_each(inputs, sides)
        return None if times is None else float(times.max())

    def times_each(self, inputs: Arrays, sides: Mapping[str, Array]) -> Floats | None:
        """The same for every row of the sides."""
        own, theirs = (np.asarray(sides[side], np.float64).reshape(len(sides[side]), -1) for side in SIDES)
        for centre in (self._score_exactly(inputs), None):
            doubled = centre is not None
            middle = np.asarray(own if centre is None else centre, np.float64).reshape(own.shape)
            samples = [np.asarray(s, np.float64).reshape(own.shape) for s in self._samples(inputs, doubled=doubled)]
            if not samples:
                continue
            spread = np.array([np.abs(s - middle).max(axis=1) for s in samples])
            allowed = self._estimate_allowance(sides, spread, len(own))
            baseline_error = np.abs(own - middle).max(axis=1)
            if doubled and (baseline_error > INCREDIBLE * allowed).any():
                continue  # another truth: the module computes something else in float64
            allowed = np.maximum(allowed, FARTHEST * baseline_error)
            error = np.abs(theirs - middle).max(axis=1)
            times = error / np.maximum(allowed, np.finfo(np.float64).tiny)
            return times if np.isfinite(times).all() else None
        return None

    def _estimate_allowance(self, sides: Mapping[str, Array], spread: Array, count: int) -> Floats:
        scores = sides["baseline"].reshape(count, -1)
        scale = np.abs(np.where(np.isfinite(scores), scores, 0).astype(np.float64)).max(axis=1)
        unit = np.finfo(scores.dtype).eps if scores.dtype.kind == "f" else np.finfo(np.float32).eps
        floor = ULPS * unit * scale
        if not len(spread):
            return np.asarray(floor)
        finite = np.where(np.isfinite(spread), spread, 0.0)
        pooled = np.sqrt(np.mean(finite**2, axis=0))
        return np.asarray(np.maximum(floor, np.maximum(FARTHEST * np.abs(finite).max(axis=0), POOLED * pooled)))

    def _score_exactly(self, inputs: Arrays) -> Array | None:
        scores = self._once("truth", lambda: self._ask(inputs))
        return scores if scores is None or self._places is None else scores[self._places]

    def _ask(self, inputs: Arrays) -> Array | None:
        if self._double is None:
            return None
        try:
            return self._read(self._double.run(inputs))
        except (Unavailable, KeyError):
            return None

    def _samples(self, inputs: Arrays, *, doubled: bool) -> list[Array]:
        samples = self._once(f"samples {doubled}", lambda: self._sample(inputs, doubled=doubled))
        return samples if self._places is None else [scores[self._places] for scores in samples]

    def _sample(self, inputs: Arrays, *, doubled: bool) -> list[Array]:
        made, double = [], self._double if doubled else None
        for seed in range(1, SAMPLES + 1):
            try:
                outputs = (
                    double.sample(inputs, seed) if double is not None else self._eager.run(nudge_inputs(inputs, seed))
                )
            except (Unavailable, Rejected):
                break
            if outputs is not None:
                made.append(self._read(outputs))
        return made
