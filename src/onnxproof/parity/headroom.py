"""Whether a case fits into memory."""

from __future__ import annotations

import math

from onnxproof.system import read_available, read_peak


class Headroom:
    """What cases cost in memory, learnt from the peak of the process: a larger one must fit into half of what is free."""

    def __init__(self) -> None:
        self._peak = read_peak()
        self._rate = 0.0

    def learn(self, elements: int) -> None:
        """Note by how much a case of this size raised the peak."""
        peak = read_peak()
        # What a small case adds is caches and code, not its elements.
        if elements > 1000:
            self._rate = max(self._rate, (peak - self._peak) / elements)
        self._peak = peak

    def fits(self, elements: int) -> bool:
        """Whether a case of this size is likely to fit."""
        return self._rate * elements <= (read_available() or math.inf) / 2
