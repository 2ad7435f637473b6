"""Intervals and tests: what a finite number of examples allows to say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from onnxproof.tensors.arrays import Array, Floats

CONFIDENCE = 0.95
REPLICATES = 1000
# Blocks that a bootstrap draws from: single examples up to this many, random groups of equal size beyond.
BLOCKS = 2000
# More examples than this are never asked for.
MOST_EXAMPLES = 1 << 40

Sums = Floats


class Interval(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


def bound_proportion(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a proportion; from 0 to 1 where there is no example."""
    if n == 0:
        return Interval(math.nan, 0.0, 1.0)
    ends = stats.binomtest(int(successes), int(n)).proportion_ci(confidence, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high))


def bound_above(events: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The exact one-sided upper bound (Clopper and Pearson) of a rate; zero events in n still leave a rate."""
    if n == 0:
        return 1.0
    ends = stats.binomtest(int(events), int(n), alternative="less").proportion_ci(confidence, method="exact")
    return float(ends.high)


def compute_mcnemar(lost: int, gained: int) -> float:
    """Exact McNemar: the p-value of the discordant pairs being even. It shows difference, never sameness."""
    n = lost + gained
    return 1.0 if n == 0 else float(stats.binomtest(int(lost), int(n), 0.5).pvalue)


def _score(difference: float, gained: float, lost: float, n: float) -> float:
    """Tango's score statistic for gained/n − lost/n against an assumed difference."""
    a = 2.0 * n
    b = -gained - lost + (2.0 * n - gained + lost) * difference
    c = -lost * difference * (1.0 - difference)
    root = (math.sqrt(max(b * b - 4.0 * a * c, 0.0)) - b) / (2.0 * a)
    variance = n * (2.0 * root + difference * (1.0 - difference))
    top = gained - lost - n * difference
    if variance <= 0.0:
        return math.copysign(math.inf, top) if abs(top) > 1e-12 else 0.0
    return top / math.sqrt(variance)


def bound_difference(gained: float, lost: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Tango's interval of (gained − lost) / n; it is meaningful without a single discordant pair too."""
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    centre = (gained - lost) / n
    # At a difference of 1 the variance may be zero, and the score infinite.
    edge = 1.0 - 1e-12

    def end(target: float, far: float) -> float:
        if abs(score := _score(far, gained, lost, n)) >= abs(target) and score * target > 0:
            return float(brentq(lambda d: _score(d, gained, lost, n) - target, *sorted((centre, far)), xtol=1e-12))
        return float(np.sign(far))

    low = -1.0 if centre <= -edge else end(z, -edge)
    high = 1.0 if centre >= edge else end(-z, edge)
    return low, high


def count_examples_needed(gained: int, lost: int, n: int, delta: float) -> int | None:
    """How many examples, with discordant pairs in the same shares, put the interval within ±delta; None where none do."""
    if n == 0 or abs(gained - lost) / n >= delta:
        return None

    def settled(size: int) -> bool:
        low, high = bound_difference(gained * size / n, lost * size / n, size, 0.90)
        return -delta < low and high < delta

    high = max(n, 2)
    while not settled(high):
        high *= 2
        if high > MOST_EXAMPLES:
            return None
    low = 1
    while high - low > max(1, high // 100):  # to one per cent: it is advice
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def count_clean_examples(rate: float, confidence: float = CONFIDENCE) -> int:
    """How many examples without a single event bound its rate at `rate`."""
    # log1p, since 1 − rate loses the digits of a small rate.
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-rate))


class Bootstrap:
    """Resamples blocks of examples; both sides see the same draws.

    A statistic is a function of sums over examples. The sums of every block are added up once, and all replicates are one
    matrix product, so that a million examples cost little more than two thousand.
    """

    def __init__(self, n: int, seed: int = 0, replicates: int = REPLICATES) -> None:
        generator = np.random.default_rng(seed)
        self.blocks = min(n, BLOCKS)
        self.assignment: NDArray[np.int32] | None = None
        if n > BLOCKS:
            self.assignment = (np.arange(n, dtype=np.int32) % BLOCKS).astype(np.int32)
            generator.shuffle(self.assignment)
        drawn = generator.integers(0, self.blocks, (replicates, self.blocks))
        drawn += np.arange(replicates)[:, None] * self.blocks
        counts = np.bincount(drawn.ravel(), minlength=replicates * self.blocks).reshape(replicates, self.blocks)
        self._draws = counts.astype(np.float64)
        self._light = counts.astype(np.float32)

    def sums(self, cells: Array, weights: Array | None, width: int) -> Sums:
        """Per block, the weights (or the count) of what examples have in each cell, one or several; negative ones are left out."""
        blocks = np.arange(len(cells)) if self.assignment is None else self.assignment.astype(np.int64)
        flat, keep = blocks.reshape(-1, *[1] * (cells.ndim - 1)) * width + cells, cells >= 0
        counted = np.bincount(flat[keep], None if weights is None else weights[keep], self.blocks * width)
        return counted.reshape(self.blocks, width).astype(np.float64)

    def add(self, rows: Array) -> Sums:
        """Per block, the sums of what examples have: one row of numbers each."""
        if self.assignment is None:
            return rows.astype(np.float64)
        added = np.zeros((self.blocks, rows.shape[1]))
        np.add.at(added, self.assignment, rows)
        return added

    def weigh(self, n: int) -> Floats:
        """How often every example counts, one row for each replicate."""
        return self._draws[:, np.arange(n) if self.assignment is None else self.assignment]

    def totals(self, sums: Sums) -> Sums:
        """The sums of every replicate: one row each. Many columns are counts, which float32 holds."""
        if sums.shape[1] < 64:
            return np.asarray(self._draws @ sums)
        return (self._light @ sums.astype(np.float32)).astype(np.float64)


# Rows of sums → one number per row.
Statistic = Callable[[Sums], Floats]


class Resampled:
    """Sums of each side: over all examples in one row, and of every replicate."""

    def __init__(self, bootstrap: Bootstrap, sums: Mapping[str, Sums]) -> None:
        self.whole = {side: mine.sum(axis=0, keepdims=True) for side, mine in sums.items()}
        self.replicates = {side: bootstrap.totals(mine) for side, mine in sums.items()}


def bound_middle(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval that holds the middle of some replicates; NaN where none is finite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return math.nan, math.nan
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(finite, (tail, 1.0 - tail))
    return float(low), float(high)


def bound_paired(replicates: Mapping[str, Floats]) -> dict[str, tuple[float, float]]:
    """Intervals of a statistic on each side and of their difference (candidate − baseline)."""
    found = {side: bound_middle(values) for side, values in replicates.items()}
    if {"baseline", "candidate"} <= replicates.keys():
        found["difference"] = bound_middle(replicates["candidate"] - replicates["baseline"])
    return found
