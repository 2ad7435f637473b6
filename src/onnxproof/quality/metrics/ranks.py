"""Scores that order the candidates of a query: how good the order is, on each side."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Array, Floats

# How far down a list is looked.
DEPTH = 10


def measure_ranks(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """`labels`: how relevant each candidate of each query is, 0 for not at all, below it where there is none."""
    grades = np.nan_to_num(np.asarray(scores.labels, np.float64), nan=-1.0)
    values: dict[str, dict[str, Array]] = {}
    best: dict[str, Array] = {}
    for side in SIDES:
        mine = np.where(grades < 0, -np.inf, scores.read(side))
        order = np.argsort(-mine, axis=1, kind="stable")
        values[side] = judge_order(np.take_along_axis(grades, order, axis=1), grades)
        best[side] = order[:, 0]
    measured.means(values, bootstrap)
    measured.put("candidate", "same_best", float((best["baseline"] == best["candidate"]).mean()))


def judge_order(ordered: Floats, grades: Floats) -> dict[str, Array]:
    """Of each query: the discounted gain of the first ones, relative to the best order, and 1 over the place of the first relevant one."""
    ideal = -np.sort(-grades, axis=1)
    gain, most = (_discount(np.maximum(rows[:, :DEPTH], 0)) for rows in (ordered, ideal))
    there = (grades > 0).any(axis=1)
    first = (ordered > 0).argmax(axis=1) + 1
    return {
        f"ndcg_at_{DEPTH}": np.where(there, gain / np.where(there, most, 1), np.nan),
        "mean_reciprocal_rank": np.where(there, 1.0 / first, np.nan),
    }


def _discount(grades: Floats) -> Floats:
    return np.asarray(((2.0**grades - 1) / np.log2(np.arange(grades.shape[1]) + 2.0)).sum(axis=1))
