"""The `quality` part of a proof: facts about a data set, no opinions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from onnxproof.proof.codec import Number, Sparse
from onnxproof.proof.thresholds import Thresholds
from onnxproof.proof.traps import PreprocessingFacts, Traps

Ends = tuple[Number, Number]
# Metric → value.
Metrics = Mapping[str, Number]
Matrix = tuple[tuple[int, ...], ...]
# A class, the labels of a multilabel task, or none.
Decision = str | list[str] | None


@dataclass(frozen=True)
class MetricInterval(Sparse):
    """The 95 % interval of a metric on each side, and of the difference."""

    method: str
    """`wilson` or `bootstrap`."""
    baseline: Ends | None = None
    candidate: Ends | None = None
    difference: Ends | None = None


@dataclass(frozen=True)
class ClassFacts:
    """One class: how many examples it has, and its metrics with `_low` and `_high` ends."""

    support: int
    baseline: Metrics = field(default_factory=dict)
    candidate: Metrics = field(default_factory=dict)


@dataclass(frozen=True)
class Confusion:
    """Rows are true classes, columns decisions."""

    PUBLISHED: ClassVar = ("difference",)

    labels: tuple[str, ...]
    baseline: Matrix
    candidate: Matrix

    @property
    def difference(self) -> Matrix:
        """Candidate − baseline."""
        pairs = zip(self.candidate, self.baseline, strict=False)
        return tuple(tuple(c - b for c, b in zip(*rows, strict=False)) for rows in pairs)


@dataclass(frozen=True)
class Flip:
    """A decision that changed."""

    ADDED: ClassVar = ("place",)

    id: Any
    row: int
    label: Decision
    baseline: Decision
    candidate: Decision
    baseline_score: float | list[Number] | None = None
    candidate_score: float | list[Number] | None = None
    margin: float | None = None
    """How far the baseline prefers its decision; None where it was not examined."""
    truth_margin: float | None = None
    allowed: float | None = None
    """What rounding may do to it."""
    explained: bool | None = None
    """Whether rounding explains it; None where it was not examined."""
    place: tuple[Number, ...] | None = None
    """Where in the example: a pixel, a token, a step, the corners of a box."""


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class McNemar:
    """Examples that only one side gets right, and the p-value of that being even."""

    gained: int
    lost: int
    p: float


@dataclass(frozen=True)
class Equivalence:
    """Whether the difference of the accuracies lies within ±delta, and how many examples would settle it."""

    delta: float
    difference: float
    low: float
    high: float
    confidence: float
    method: str
    within: bool
    needed: int | None = None


@dataclass(frozen=True)
class FlipBound:
    """The upper bound of the rate of flips, and how many examples without one would bound it at delta."""

    upper: float
    confidence: float
    for_delta: int


@dataclass(frozen=True)
class Tests(Sparse):
    """What a finite number of examples allows to say; nothing where there are no decisions."""

    mcnemar: McNemar | None = None
    equivalence: Equivalence | None = None
    flip_bound: FlipBound | None = None


@dataclass(frozen=True)
class Bin:
    """Examples about which a side is about as sure: how sure, and how often it is right."""

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Unanswered(Sparse):
    """Examples that a side answered with NaN, and the first that only one did; nothing where there are none."""

    baseline: int | None = None
    candidate: int | None = None
    both: int | None = None
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True)
class FarExample:
    """An example whose scores differ much, and how many times what rounding may do that is."""

    ADDED: ClassVar = ("step", "file")

    row: int
    id: Any
    difference: float
    times_rounding: float | None = None
    step: int | None = None
    """Of a generation: the first step that rounding does not explain."""
    file: str | None = None
    """The inputs of that step."""


@dataclass(frozen=True)
class ScoreDifference:
    """How far apart the scores are, with the examples that were examined, the farthest beyond rounding first."""

    max_abs: float = 0.0
    mean_abs: float = 0.0
    farthest: tuple[FarExample, ...] = ()


@dataclass(frozen=True)
class Quality:
    """What both sides answered for the examples of a data set."""

    ADDED: ClassVar = ("decisions",)

    task: str = "custom"
    n: int = 0
    scale: str = "value"
    """What the scores are: probability, logit, log-probability, decision or value."""
    output: str = "output"
    baseline: Metrics = field(default_factory=dict)
    candidate: Metrics = field(default_factory=dict)
    intervals: Mapping[str, MetricInterval] = field(default_factory=dict)
    per_class: Mapping[str, ClassFacts] = field(default_factory=dict)
    confusion: Confusion | None = None
    flips: tuple[Flip, ...] = ()
    flip_count: int = 0
    """All flips; the list may hold fewer of very many."""
    flip_rate: Rate | None = None
    decisions: int | None = None
    """Decisions that could change, where an example has several: labelled places, boxes."""
    tests: Tests = Tests()
    thresholds: Thresholds | None = None
    calibration: Mapping[str, tuple[Bin, ...]] | None = None
    """Side → how often it is right when it is so sure."""
    traps: Traps = Traps()
    preprocessing: PreprocessingFacts | None = None
    classes: tuple[str, ...] = ()
    positive: str | None = None
    guessed: bool = False
    """Whether the order of the classes is that of the alphabet, because nobody gave it."""
    measured: int | None = None
    """Examples with a label and an answer on both sides: metrics are about these."""
    unlabelled: int = 0
    unanswered: Unanswered = Unanswered()
    score_difference: ScoreDifference = ScoreDifference()
    data: str = ""
    rows: int | None = None
    """Rows of the data, where that is known; fewer evaluated ones were lost."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    workers: int = 1
    where: str = "local"
    """`local`, `processes` or `ray`."""

    @property
    def unexplained(self) -> list[Flip]:
        """Flips that rounding does not explain."""
        return [flip for flip in self.flips if flip.explained is False]

    def value(self, metric: str, side: str = "candidate") -> float | None:
        """A metric, or one of a class: `recall`, `recall[fraud]`; None where there is none."""
        name, _, rest = metric.partition("[")
        if not rest.endswith("]"):
            return _drop_nan(getattr(self, side).get(metric))
        facts = self.per_class.get(rest[:-1])
        return None if facts is None else _drop_nan(getattr(facts, side).get(name))

    def low_end(self, metric: str, side: str = "candidate") -> float | None:
        """The low end of a metric's interval, where it has one."""
        if metric.endswith("]"):
            return self.value(metric.replace("[", "_low[", 1), side)
        ends = getattr(self.intervals.get(metric), side, None)
        return _drop_nan(ends[0]) if ends else None

    def shares(self) -> dict[str, float]:
        """Class → share of the labelled examples."""
        total = sum(facts.support for facts in self.per_class.values())
        whole = self.n - self.unlabelled if self.task == "multilabel" else total
        return {name: facts.support / max(whole, 1) for name, facts in self.per_class.items()}


def _drop_nan(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)
