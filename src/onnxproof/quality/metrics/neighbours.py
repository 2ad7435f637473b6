"""Embeddings: whether the nearest neighbours of an example are of its kind, on each side, and the same on both."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Array, Floats

RANKS = (1, 5, 10)
# Examples whose neighbours are looked for, and how many at once.
QUERIES, CHUNK = 10_000, 512


def measure_neighbours(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Every example asks all others."""
    _, kinds = np.unique(scores.labels.reshape(scores.n, -1), axis=0, return_inverse=True)
    labels = kinds.reshape(-1)
    alone = np.bincount(labels)[labels] == 1  # no other example is of its kind: nothing could be found
    ranks: dict[str, dict[str, Array]] = {}
    nearest: dict[str, Array] = {}
    vectors = {side: _normalise(scores.read(side)) for side in SIDES}
    for side, mine in vectors.items():
        rank, nearest[side] = _search(mine, labels)
        rank[alone[: len(rank)]] = np.nan
        rank = np.concatenate([rank, np.full(scores.n - len(rank), np.nan)])
        known = np.isfinite(rank)
        ranks[side] = {f"recall_at_{k}": np.where(known, rank <= k, np.nan) for k in RANKS if k < scores.n}
        ranks[side]["mean_reciprocal_rank"] = 1.0 / rank
    measured.means(ranks, bootstrap)
    measured.put("candidate", "cosine", float(np.einsum("ij,ij->i", *vectors.values()).min()))
    measured.put("candidate", "same_neighbour", float((nearest["baseline"] == nearest["candidate"]).mean()))


def _normalise(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny))


def _search(vectors: Floats, labels: Array) -> tuple[Floats, Array]:
    """For each example the rank of the first of its kind among all others, from 1, and the nearest."""
    ranks, nearest = [], []
    for start in range(0, min(len(vectors), QUERIES), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(vectors), QUERIES))
        near = vectors[rows] @ vectors.T
        near[np.arange(len(rows)), rows] = -np.inf
        alike = labels[rows][:, None] == labels[None]
        best = np.where(alike, near, -np.inf).max(axis=1)
        ranks.append(1.0 + (near > best[:, None]).sum(axis=1))
        nearest.append(near.argmax(axis=1))
    return np.concatenate(ranks), np.concatenate(nearest)
