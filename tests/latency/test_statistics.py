"""Percentiles and ratios hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.latency.statistics import bound_ratio, count_needed, find_percentile


@pytest.mark.parametrize(("share", "count"), [(0.9, 64), (0.95, 130), (0.99, 662)])
def test_a_percentile_needs_its_samples(share, count):
    assert count_needed(share) == count
    samples = np.arange(count)
    assert find_percentile(samples, share) is not None
    assert find_percentile(samples[:-1], share) is None


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_bounds_of_a_percentile_hold_it(share):
    generator = np.random.default_rng(1)
    truth = -np.log(1 - share)
    found = [find_percentile(generator.exponential(size=700), share) for _ in range(500)]
    assert np.mean([p.high >= truth for p in found]) >= 0.98
    assert np.mean([p.low <= truth for p in found]) >= 0.98
    assert all(p.low <= p.value <= p.high for p in found)


def noisy_blocks(generator, rounds, ratio):
    """Blocks of equal windows on a machine that drifts, is interrupted and spreads widely."""
    drift = np.exp(np.cumsum(generator.normal(0, 0.02, rounds)))
    one, other = (
        np.exp(generator.normal(0, 0.05, rounds)) * (1 + 3 * (generator.random(rounds) < 0.15)) for _ in range(2)
    )
    return ratio * drift * one, drift * other


@pytest.mark.parametrize("ratio", [1.0, 2.0, 0.1])
@pytest.mark.parametrize("rounds", [16, 60, 200])
def test_the_interval_holds_a_known_ratio_on_a_bad_machine(ratio, rounds):
    generator = np.random.default_rng(rounds)
    found = [bound_ratio(*noisy_blocks(generator, rounds, ratio)) for _ in range(100)]
    assert sum(i.low <= ratio <= i.high for i in found) >= 95
    assert all(i.low <= i.value <= i.high for i in found)


def test_drift_that_hits_both_cancels():
    drift = np.linspace(1, 10, 100)
    found = bound_ratio(3 * drift, drift)
    assert found.low == pytest.approx(3.0)
    assert found.high == pytest.approx(3.0)


def test_too_few_rounds_give_no_interval_and_unpaired_ones_are_refused():
    assert bound_ratio(np.ones(7), np.ones(7)) is None
    with pytest.raises(ValueError, match="as many of one as of the other"):
        bound_ratio(np.ones(9), np.ones(10))
