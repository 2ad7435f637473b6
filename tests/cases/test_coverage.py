"""How far generated values reach."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.cases.coverage import cover, sort_finite


def test_coverage_shows_a_gap():
    data = np.concatenate([np.linspace(0, 1, 500), np.linspace(5000, 5001, 500)])
    covered = cover(data, sort_finite([np.linspace(-3, 3, 1000)]))
    assert covered.share == pytest.approx(0.5)
    assert covered.data_high == 5001
    assert cover(np.linspace(-1, 1, 99), sort_finite([np.linspace(-3, 3, 1000)])).share == 1.0


def test_what_is_not_finite_is_not_counted():
    covered = cover(np.array([1.0, 2.0, np.nan, np.inf]), sort_finite([np.array([1.0, np.nan]), np.array([2.0])]))
    assert (covered.share, covered.data_low, covered.data_high) == (1.0, 1.0, 2.0)
    assert cover(np.array([np.nan]), sort_finite([])).data_high is None
