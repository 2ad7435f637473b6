"""Metrics as they come together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxproof.quality.intervals import wilson


@dataclass
class Measured:
    """Metrics as they come together."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """Side → metric → value."""
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Metric → side (and `difference`) → low, high; and the method."""
    per_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    confusion: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None

    def put(self, side: str, metric: str, value: float) -> None:
        """Note a value."""
        self.values.setdefault(side, {})[metric] = float(value)

    def proportion(self, side: str, metric: str, successes: int, n: int) -> None:
        """Note a share with Wilson's interval."""
        interval = wilson(successes, n)
        self.put(side, metric, 0.0 if math.isnan(interval.value) else interval.value)
        self._interval(metric, side, (interval.low, interval.high), "wilson")

    def bootstrapped(self, metric: str, ends: Mapping[str, tuple[float, float]]) -> None:
        """Note the intervals of a paired bootstrap; a share keeps Wilson's and gets the difference."""
        for side, pair in ends.items():
            if side == "difference" or self.intervals.get(metric, {}).get("method") != "wilson":
                self._interval(metric, side, pair, "bootstrap")

    def of_class(self, name: str, side: str, metric: str, ends: tuple[float, float]) -> None:
        """Note the interval of a metric of one class."""
        self.per_class[name][side] |= {f"{metric}_low": ends[0], f"{metric}_high": ends[1]}

    def _interval(self, metric: str, side: str, pair: tuple[float, float], method: str) -> None:
        entry = self.intervals.setdefault(metric, {"method": method})
        entry[side] = [pair[0], pair[1]]
