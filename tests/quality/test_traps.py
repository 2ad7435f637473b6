"""Distances that traps are found with: those of plain definitions, written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from onnxproof.quality.traps import find_critical_shift, find_nearest, measure_shift


def far(a, b):
    """The largest distance of two distribution functions, at every value there is."""
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    return max(abs((a <= value).mean() - (b <= value).mean()) for value in np.concatenate([a, b]))


@pytest.mark.parametrize("seed", range(4))
def test_the_shift_is_the_distance_of_the_distribution_functions(seed):
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=300).astype(np.float32), generator.normal(0.3, 2, 170).astype(np.float32)
    a[:9], b[3] = np.round(a[9:18]), np.nan
    a[20], b[:5] = np.inf, 0
    assert measure_shift(a, b) == pytest.approx(far(a, b), abs=1e-12)
    assert measure_shift(a, a) == 0
    assert measure_shift(a, np.full(3, np.nan)) == 0


@pytest.mark.parametrize(("n", "m", "features"), [(100, 50, 1), (4096, 3000, 12), (4096, 4096, 1024)])
def test_the_critical_shift_is_smirnovs(n, m, features):
    expected = np.sqrt(-np.log(1e-3 / (2 * features)) / 2) * np.sqrt((n + m) / (n * m))
    assert find_critical_shift(n, m, features) == pytest.approx(expected, rel=1e-5)


def test_chance_exceeds_the_critical_shift_as_rarely_as_asked():
    generator = np.random.default_rng(0)
    samples = [(generator.normal(size=200), generator.normal(size=300)) for _ in range(400)]
    beyond = np.mean([measure_shift(a, b) > find_critical_shift(200, 300, 1, level=0.05) for a, b in samples])
    assert 0.02 < beyond < 0.09


@pytest.mark.parametrize(("width", "dtype"), [(2, np.float64), (12, np.float64), (64, np.float32)])
def test_the_nearest_row_is_that_of_all_distances(width, dtype):
    generator = np.random.default_rng(width)
    train = generator.normal(size=(500, width)).astype(dtype)
    train[100] = train[40]
    test = generator.normal(size=(60, width)).astype(dtype)
    test[:5] = train[10:15]
    places = np.arange(0, 500, 20)
    queries, own = np.concatenate([test, train[places]]), np.concatenate([np.full(60, -1), places])
    apart = cdist(queries.astype(np.float64), train.astype(np.float64))
    apart[np.arange(60, 85), places] = np.inf
    for size in (1, 64, 500):
        found = find_nearest(queries, own, [train[i : i + size] for i in range(0, 500, size)])
        assert found == pytest.approx(apart.min(axis=1), rel=1e-5, abs=1e-5)
        assert (found[:5] == 0).all()
        assert found[60 + 2] == 0, "a twin of a probe is not the probe itself"
