"""Ranks of neighbours."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.metrics import measure
from onnxproof.quality.task import Plan


def test_ranks_of_the_first_of_its_kind():
    vectors = np.array([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9], [-1, -1]], np.float32)
    other = np.array([[1.0, 0], [0.1, 0.9], [0, 1], [0.9, 0.1], [-1, -1]], np.float32)
    columns = {"labels": np.array([0, 0, 1, 1, 2]), "baseline": vectors, "candidate": other}
    measured = measure(merge([Shard(0, 5, columns)], Plan("embedding", "y", "value", 2)))
    assert measured.values["baseline"]["recall_at_1"] == 1.0  # of those that are not alone
    assert measured.values["candidate"]["recall_at_1"] == 0.0
    assert measured.values["candidate"]["mean_reciprocal_rank"] < 0.6
    assert measured.values["candidate"]["same_neighbour"] < 1.0
