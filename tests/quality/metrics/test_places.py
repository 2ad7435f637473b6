"""Overlaps of masks, from counts of classes."""

from __future__ import annotations

import numpy as np
from sklearn import metrics as sk

from onnxproof.quality.metrics.places import average_overlaps, compute_overlaps
from onnxproof.quality.placerun import count_places


def test_overlaps_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    codes, decided = generator.integers(0, 4, (5, 300)), generator.integers(0, 4, (5, 300))
    codes[:, :50] = -1
    counts = count_places(codes, decided, 5)
    known = codes.ravel() >= 0
    expected = sk.jaccard_score(codes.ravel()[known], decided.ravel()[known], average=None, labels=range(4))
    whole = counts.sum(axis=0, keepdims=True).astype(np.float64)
    np.testing.assert_allclose(compute_overlaps(whole)[0, :4], expected)
    assert np.isnan(compute_overlaps(whole)[0, 4])  # a class that is nowhere
    np.testing.assert_allclose(average_overlaps(whole), expected.mean())
