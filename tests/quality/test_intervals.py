"""Intervals and tests, against other libraries and published numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn import metrics as sk
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from onnxproof.quality import intervals
from onnxproof.quality.metrics import measure
from quality.scored import binary, scores_of


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (87, 263), (999, 1000)])
def test_wilson_is_statsmodels(successes, n):
    ours = intervals.bound_proportion(successes, n)
    low, high = proportion_confint(successes, n, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("events", "n"), [(0, 100), (0, 1000), (3, 500)])
def test_the_upper_bound_is_clopper_and_pearson(events, n):
    assert intervals.bound_above(events, n) == pytest.approx(stats.beta.ppf(0.95, events + 1, n - events))
    _, two_sided = proportion_confint(events, n, alpha=0.10, method="beta")
    assert intervals.bound_above(events, n) == pytest.approx(two_sided, abs=1e-9)


def test_zero_flips_bound_the_rate():
    assert intervals.bound_above(0, 100) == pytest.approx(0.0295, abs=1e-4)
    assert intervals.bound_above(0, 1000) == pytest.approx(0.0030, abs=1e-4)
    assert intervals.count_clean_examples(0.03) == 99


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (1, 7), (12, 12), (30, 9)])
def test_mcnemar_is_statsmodels(lost, gained):
    table = [[50, lost], [gained, 50]]
    expected = statsmodels_mcnemar(table, exact=True).pvalue if lost + gained else 1.0
    assert intervals.compute_mcnemar(lost, gained) == pytest.approx(expected)


def test_tango_is_the_published_interval():
    # Airway hyper-responsiveness before and after transplantation, 1, 1, 7, 12 of 21 (Bentur et al. 2009), as worked out
    # in Fagerland, Lydersen and Laake (2014).
    low, high = intervals.bound_difference(1, 7, 21)
    assert (low, high) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert intervals.bound_difference(7, 1, 21) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("gained", "lost", "n", "confidence", "expected"),
    [(20, 60, 1000, 0.95, (-0.0584, -0.0231)), (28, 25, 618, 0.90, (-0.0148, 0.0247))],
)
def test_tango_is_that_of_propcis(gained, lost, n, confidence, expected):
    # R's PropCIs::scoreci.mp(lost, gained, n, confidence), as it was reported with four digits.
    assert intervals.bound_difference(gained, lost, n, confidence) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("gained", "lost", "n"), [(7, 3, 50), (0, 4, 40), (25, 24, 300), (1, 0, 44)])
def test_tango_inverts_the_score_test(gained, lost, n):
    """At each end the score statistic, with nuisance parameters fitted numerically, is the normal quantile."""

    def statistic(difference):
        def unlikely(q):
            shares = np.array([q + difference, q, 1 - 2 * q - difference])
            return -np.sum(np.array([gained, lost, n - gained - lost]) * np.log(np.maximum(shares, 1e-300)))

        ends = max(0.0, -difference), (1 - difference) / 2
        q = optimize.minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
        return (gained - lost - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))

    low, high = intervals.bound_difference(gained, lost, n)
    z = stats.norm.ppf(0.975)
    assert statistic(low) == pytest.approx(z, abs=1e-3)
    assert statistic(high) == pytest.approx(-z, abs=1e-3)


def test_tango_without_discordant_pairs_is_not_empty():
    low, high = intervals.bound_difference(0, 0, 100)
    z = stats.norm.ppf(0.975) ** 2
    assert high == pytest.approx(z / (100 + z), abs=1e-9)
    assert low == pytest.approx(-high)


def test_how_many_examples_would_settle_it():
    needed = intervals.count_examples_needed(0, 0, 100, 0.01)
    assert needed is not None
    for size, within in ((needed, True), (int(needed * 0.97), False)):
        low, high = intervals.bound_difference(0, 0, size, 0.90)
        assert (low > -0.01 and high < 0.01) is within
    assert intervals.count_examples_needed(5, 25, 1000, 0.01) is None


def test_the_bootstrap_is_scipys():
    labels, logits = binary(600)
    measured = measure(scores_of(labels, logits))

    def auc(index):
        rows = index.astype(int)
        return sk.roc_auc_score(labels[rows], logits[rows])

    theirs = stats.bootstrap(
        (np.arange(600),), auc, vectorized=False, n_resamples=500, method="percentile", random_state=0
    ).confidence_interval
    assert measured.intervals["roc_auc"]["candidate"] == pytest.approx([theirs.low, theirs.high], abs=0.006)


def test_blocks_of_many_examples_give_the_same_width():
    generator = np.random.default_rng(1)
    values = generator.exponential(1.0, 200_000)
    bootstrap = intervals.Bootstrap(len(values))
    cells = np.zeros(len(values), np.int64)
    sums = np.concatenate([bootstrap.sums(cells, values, 1), bootstrap.sums(cells, None, 1)], axis=1)
    low, high = intervals.bound_middle(bootstrap.totals(sums)[:, 0] / bootstrap.totals(sums)[:, 1])
    width = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert high - low == pytest.approx(width, rel=0.12)
    assert low < values.mean() < high
