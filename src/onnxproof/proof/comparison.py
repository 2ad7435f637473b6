"""All numbers about one output of one case: plain data, never an opinion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from onnxproof.proof.codec import Number

Kind = Literal["float", "discrete"]


@dataclass(frozen=True)
class Element:
    """One element, with both values."""

    index: tuple[int, ...]
    baseline: Any
    candidate: Any


@dataclass(frozen=True)
class Pattern:
    """Where NaN and the infinities are."""

    baseline: int = 0
    candidate: int = 0
    differing: int = 0
    unexplained: int | None = None
    """Of those that differ, how many no legal rounding produces; None where that was not asked."""


@dataclass(frozen=True)
class Noise:
    """The candidate's and the baseline's distance from the truth."""

    method: str
    baseline_rms: Number
    candidate_rms: Number
    ratio: Number
    worst_ratio: Number
    unexplained: float | None = None
    """Worst element's distance over what legal rounding may cost there; above 1 it is not rounding. None: not asked."""


@dataclass(frozen=True)
class Exactness:
    """The graph in float64 against the module in float64, relative to the output's scale."""

    error: Number
    allowance: Number
    ratio: Number
    """Worst element's error over its allowance (folded float32 constants, float64 rounding)."""


@dataclass(frozen=True)
class PrecisionCost:
    """What a chosen lower precision changes: the file's exact meaning against the original."""

    ADDED: ClassVar = ("kinds",)

    decibels: float
    """Signal to noise; 300 where nothing changes."""
    lost: int = 0
    """Elements that are finite in the original only."""
    changed: int = 0
    """Rows whose largest score is another one, where an output has a score for each class."""
    rows: int = 0
    kinds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Decision of the original → how many are others now, of how many; where there are any."""


@dataclass(frozen=True)
class SetMatch:
    """How the boxes of two sides were matched, so that they are compared box by box."""

    pairs: int
    moved: int
    """Pairs at other places."""
    missing: int
    """Boxes that only the baseline has."""
    extra: int
    """Boxes that only the candidate has."""
    unexplained: int = 0
    """Boxes on one side only that no legal rounding adds or takes away."""


@dataclass(frozen=True)
class Comparison:
    """All numbers about one output of one case."""

    PUBLISHED: ClassVar = ("noise_ratio",)
    ADDED: ClassVar = ("cost", "matched")

    output: str
    kind: Kind
    baseline_dtype: str
    candidate_dtype: str
    baseline_shape: tuple[int, ...]
    candidate_shape: tuple[int, ...]
    size: int = 0
    compared: int = 0
    """Pairs of finite (or discrete) values: the ones the numbers below speak of."""
    max_abs: float | None = None
    mean_abs: float | None = None
    max_rel: float | None = None
    mean_rel: float | None = None
    max_ulp: float | None = None
    cosine: float | None = None
    scale: float | None = None
    outside: int | None = None
    """Elements outside the tolerance that the run was made with."""
    mismatched: int = 0
    """Discrete values that differ."""
    unexplained_mismatches: int | None = None
    pattern: Pattern = Pattern()
    envelope: tuple[tuple[float, float], ...] = ()
    """(|baseline|, |difference|) points that decide |difference| ≤ atol + rtol·|baseline| for any tolerance."""
    worst: tuple[Element, ...] = ()
    noise: Noise | None = None
    exactness: Exactness | None = None
    cost: PrecisionCost | None = None
    swapped_with: str | None = None
    matched: SetMatch | None = None
    """Where the output is of boxes whose order or number differs: the numbers above are of those that both sides have."""

    @property
    def same_form(self) -> bool:
        """Whether shape and dtype agree, so that numbers exist."""
        return self.baseline_shape == self.candidate_shape and self.baseline_dtype == self.candidate_dtype

    @property
    def asked(self) -> bool:
        """Whether it was asked what legal rounding explains of it."""
        of_noise = self.noise.unexplained if self.noise is not None else None
        return any(known is not None for known in (of_noise, self.pattern.unexplained, self.unexplained_mismatches))

    @property
    def noise_ratio(self) -> float | None:
        """rms distance of the candidate from the truth over the baseline's."""
        return None if self.noise is None else self.noise.ratio

    def excess(self, atol: float, rtol: float) -> float:
        """How far the worst pair is above atol + rtol·|baseline| (negative: inside)."""
        return max((difference - rtol * size - atol for size, difference in self.envelope), default=-atol)
