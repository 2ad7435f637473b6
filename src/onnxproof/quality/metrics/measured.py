"""Metrics as they come together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxproof.proof.quality import Bin, Confusion
from onnxproof.quality.intervals import Bootstrap, Resampled, Statistic, bound_paired, bound_proportion
from onnxproof.tensors.arrays import Array, Floats


@dataclass
class Measured:
    """Metrics as they come together."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """Side → metric → value."""
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Metric → side (and `difference`) → low, high; and the method."""
    per_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    confusion: Confusion | None = None
    calibration: dict[str, tuple[Bin, ...]] | None = None

    def put(self, side: str, metric: str, value: float) -> None:
        """Note a value."""
        self.values.setdefault(side, {})[metric] = float(value)

    def proportion(self, side: str, metric: str, successes: int, n: int) -> None:
        """Note a share with Wilson's interval."""
        self.put(side, metric, successes / max(n, 1))
        self._put_interval(metric, side, bound_proportion(successes, n)[1:], "wilson")

    def estimate(self, metric: str, sums: Resampled, statistic: Statistic, *, interval: bool = True) -> None:
        """Note a statistic of all examples, and its intervals."""
        for side, whole in sums.whole.items():
            self.put(side, metric, statistic(whole)[0])
        if interval:
            self.bootstrapped(metric, {side: statistic(mine) for side, mine in sums.replicates.items()})

    def means(self, values: Mapping[str, Mapping[str, Array]], bootstrap: Bootstrap) -> None:
        """Note means of numbers per example (side → metric → numbers), of those that are finite."""
        for name in next(iter(values.values()), {}):
            sums = {}
            for side, mine in values.items():
                cells = np.where(np.isfinite(mine[name]), 0, -1)
                sums[side] = np.concatenate([bootstrap.sums(cells, w, 1) for w in (mine[name], None)], axis=1)
            if all(both[:, 1].any() for both in sums.values()):
                mean = Resampled(bootstrap, sums)
                self.estimate(name, mean, lambda s: np.asarray(s[:, 0] / np.maximum(s[:, 1], 1)))

    def bootstrapped(self, metric: str, replicates: Mapping[str, Floats]) -> None:
        """Note the intervals of a paired bootstrap; a share keeps Wilson's and gets the difference."""
        for side, pair in bound_paired(replicates).items():
            if side == "difference" or self.intervals.get(metric, {}).get("method") != "wilson":
                self._put_interval(metric, side, pair, "bootstrap")

    def of_class(self, name: str, side: str, metric: str, ends: tuple[float, float]) -> None:
        """Note the interval of a metric of one class."""
        self.per_class[name][side] |= {f"{metric}_low": ends[0], f"{metric}_high": ends[1]}

    def _put_interval(self, metric: str, side: str, pair: tuple[float, float], method: str) -> None:
        self.intervals.setdefault(metric, {"method": method})[side] = list(pair)
