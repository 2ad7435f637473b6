"""Key points: how near each one is to where it should be, relative to the size of what they belong to."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics.measured import Measured
from onnxproof.tensors.arrays import Array, Floats

# The share of the size within which a point counts as found, and how fast likeness falls: that of a hip in COCO.
NEAR, FALLOFF = 0.1, 2 * 0.107


def measure_points(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """`labels`: (examples, points, 2 or 3) or (examples, figures, points, 2 or 3); a third number of 0 says that a point is not seen."""
    labels = np.asarray(scores.labels, np.float64)
    figures = labels.reshape(scores.n, -1, *labels.shape[-2:])
    values: dict[str, dict[str, Array]] = {}
    for side in SIDES:
        found = scores.read(side).reshape(scores.n, -1, *scores.plan.size[-2:])[..., :2]
        oks, near = np.array([match_figures(*both) for both in zip(found, figures, strict=True)]).T
        values[side] = {"oks": oks, "pck_at_10": near}
    measured.means(values, bootstrap)


def match_figures(found: Floats, true: Floats) -> tuple[float, float]:
    """The mean likeness (OKS), and the share of seen points that were found, of figures matched as sets; NaN where nothing is seen."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and seldom needed

    where = true[..., :2]
    seen = np.isfinite(where).all(axis=-1) & (where >= 0).all(axis=-1)
    seen &= true[..., 2] > 0 if true.shape[-1] == 3 else True
    there = seen.any(axis=1)
    where, seen = where[there], seen[there]
    if not len(where):
        return np.nan, np.nan
    low, high = (np.where(seen[..., None], where, edge) for edge in (np.inf, -np.inf))
    size = np.maximum(np.sqrt(np.prod(high.max(axis=1) - low.min(axis=1), axis=-1)), 1e-6)
    away = np.linalg.norm(found[None] - where[:, None], axis=-1) / size[:, None, None]
    away = np.where(np.isfinite(away), away, np.inf)
    count = seen.sum(axis=1)[:, None]
    alike = np.where(seen[:, None], np.exp(-(away**2) / (2 * FALLOFF**2)), 0.0).sum(axis=2) / count
    rows, columns = linear_sum_assignment(-alike)
    near = ((away <= NEAR) & seen[:, None])[rows, columns].sum()
    return float(alike[rows, columns].sum() / len(where)), float(near / seen.sum())
