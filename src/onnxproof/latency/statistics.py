"""Percentiles that the samples support, and ratios with their intervals. Pure numpy."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onnxproof.tensors.arrays import Floats

# Of the bounds of percentiles.
CONFIDENCE = 0.99
# Shares of the rounds that are left out at each end. The first gives the ratio; the interval holds for all of them.
TRIMS = (0.2, 0.1, 0.4)
# Of each trimmed mean's bootstrap interval. The hull of all is reported as 95 %: rounds are few and not normal, and
# an interval that promises 95 % and holds in 93 % is worse than one that is a little too wide.
LEVEL = 0.99
RESAMPLES = 2000
# Rounds below which no interval is given: a bootstrap of fewer knows too little.
FEWEST_ROUNDS = 8


class Interval(NamedTuple):
    """A percentile in nanoseconds with its order-statistic bounds, or a ratio with its 95 % interval."""

    value: float
    low: float
    high: float


@cache
def count_needed(share: float, confidence: float = CONFIDENCE) -> int:
    """Samples with which the second largest is above the percentile with this confidence: one outlier alone is no tail."""
    count = 2
    # P(none above) + P(one above), of a binomial with `count` trials.
    while share**count + count * (1 - share) * share ** (count - 1) > 1 - confidence:
        count += 1
    return count


def find_percentile(samples: ArrayLike, share: float, confidence: float = CONFIDENCE) -> Interval | None:
    """The percentile and its bounds; None where there are too few samples to support it."""
    values = np.sort(np.asarray(samples, np.float64))
    count = len(values)
    if count < count_needed(share, confidence):
        return None
    above = min(_find_rank_above(count, share, confidence), count)
    below = max(count + 1 - _find_rank_above(count, 1 - share, confidence), 1)
    return Interval(float(np.quantile(values, share)), float(values[below - 1]), float(values[above - 1]))


@cache
def _find_rank_above(count: int, share: float, confidence: float) -> int:
    """The smallest rank whose order statistic is above the percentile with this confidence; count + 1 where none is."""
    ranks = np.arange(count + 1)
    # In logarithms: factorials of thousands of samples overflow.
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    logs = (
        factorials[count] - factorials - factorials[::-1] + ranks * np.log(share) + (count - ranks) * np.log1p(-share)
    )
    return int(np.searchsorted(np.cumsum(np.exp(logs))[:-1], confidence)) + 1


def trim_mean(values: Floats, share: float) -> Floats:
    """The mean over the last axis without this share at each end."""
    ordered = np.sort(values, axis=-1)
    count = ordered.shape[-1]
    cut = int(count * share)
    return np.asarray(ordered[..., cut : count - cut].mean(axis=-1))


def bound_ratio(slow: ArrayLike, fast: ArrayLike, *, seed: int = 0) -> Interval | None:
    """How many times longer `slow` takes than `fast`, from the mean time per call in paired blocks of equal length.

    Rounds are resampled whole, so what both blocks of a round share (load, frequency) stays in the pair and cancels. Block
    means are linear in time, unlike medians: a model that does its work twice takes exactly twice as long, also where an
    interruption hits every tenth call. None with too few rounds.
    """
    a, b = np.asarray(slow, np.float64), np.asarray(fast, np.float64)
    if len(a) != len(b):
        raise ValueError(f"paired blocks: expected as many of one as of the other, got {len(a)} and {len(b)}")
    if len(a) < FEWEST_ROUNDS:
        return None
    logs = np.log(a / b)
    drawn = np.random.default_rng(seed).integers(0, len(logs), (RESAMPLES, len(logs)))
    resampled = np.sort(logs[drawn], axis=-1)
    ends = np.array([np.quantile(trim_mean(resampled, share), ((1 - LEVEL) / 2, (1 + LEVEL) / 2)) for share in TRIMS])
    centre = float(trim_mean(logs, TRIMS[0]))
    # Student's quantile over the normal one (first term of its expansion): a bootstrap of few rounds is too narrow.
    wider = 1 + (NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2 + 1) / (4 * (len(logs) - 1))
    low, high = centre - wider * (centre - ends[:, 0].min()), centre + wider * (ends[:, 1].max() - centre)
    return Interval(math.exp(centre), math.exp(min(low, centre)), math.exp(max(high, centre)))
