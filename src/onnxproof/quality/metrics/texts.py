"""Generated texts: how likely each side finds the same tokens, and how far the continuations agree."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.accumulate import SIDES, Scores
from onnxproof.quality.intervals import Bootstrap, Resampled
from onnxproof.quality.metrics.measured import Measured


def measure_texts(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    """Perplexity of both sides; the candidate's share of equal continuations, and the tokens before the first other one."""
    columns = scores.columns
    losses = {side: np.stack([columns[f"{side}_loss"], columns["loss_count"]], axis=1) for side in SIDES}
    sums = Resampled(bootstrap, {side: bootstrap.add(pair) for side, pair in losses.items()})
    measured.estimate("perplexity", sums, lambda s: np.exp(s[:, 0] / np.maximum(s[:, 1], 1)))
    same = {"baseline": np.ones(scores.n), "candidate": columns["same"].astype(np.float64)}
    prefix = {"baseline": scores.labels.astype(np.float64), "candidate": columns["prefix"].astype(np.float64)}
    measured.means({side: {"exact_match": same[side], "prefix": prefix[side]} for side in SIDES}, bootstrap)
