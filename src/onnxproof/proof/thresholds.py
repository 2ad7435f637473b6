"""What every threshold on binary scores would do: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnxproof.proof.codec import Number, Sparse


@dataclass(frozen=True)
class Rates(Sparse):
    """Counts and rates of the decisions with one threshold."""

    tp: int
    fp: int
    fn: int
    tn: int
    recall: float
    precision: float
    specificity: float
    f1: float
    accuracy: float
    threshold: Number | None = None
    """As a probability."""
    raw: Number | None = None
    """On the scale of the scores."""
    cost: float | None = None
    """Per example, where a goal has costs."""
    flips: int | None = None
    """Decisions that differ between the sides with this threshold on both."""


@dataclass(frozen=True)
class Curve:
    """Columns of counts and rates at up to some hundred thresholds, the lowest first."""

    threshold: tuple[Number, ...]
    tp: tuple[int, ...]
    fp: tuple[int, ...]
    fn: tuple[int, ...]
    tn: tuple[int, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]


@dataclass(frozen=True)
class Current:
    """What the threshold does that decisions were made with."""

    threshold: float
    raw: Number
    baseline: Rates
    candidate: Rates


@dataclass(frozen=True)
class Chosen:
    """The threshold that decisions were made with, as a probability."""

    threshold: float


@dataclass(frozen=True)
class GoalResult:
    """The threshold that each side would choose for a goal, how far it moved, and what the baseline's does on the candidate."""

    OMITTED: ClassVar = ("moved", "moved_raw", "transferred")

    goal: str
    kind: str
    metric: str
    value: float
    baseline: Rates | None = None
    candidate: Rates | None = None
    moved: Number | None = None
    moved_raw: Number | None = None
    transferred: Rates | None = None

    def reached(self, rates: Rates) -> float:
        """What a threshold achieves, the more the better."""
        value: float = -(rates.cost or 0.0) if self.kind == "cost" else vars(rates).get(self.metric) or 0.0
        return value


@dataclass(frozen=True)
class Thresholds:
    """The trade-off over all thresholds on both sides, and the thresholds for the user's goals."""

    scale: str
    current: Current
    baseline: Curve
    candidate: Curve
    goals: tuple[GoalResult, ...]
    chosen: Chosen
