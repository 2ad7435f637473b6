"""Which optimisation heals by its absence."""

from __future__ import annotations

import numpy as np

from onnxproof.blame.rewrites import REWRITES, find_healing_rewrite


def test_bisecting_the_rewrites_asks_few_questions():
    asked = []

    def healed(off: tuple[str, ...]) -> bool:
        asked.append(off)
        return "Pad_Fusion" in off

    assert find_healing_rewrite(healed) == "Pad_Fusion"
    assert len(asked) <= 2 * int(np.ceil(np.log2(len(REWRITES)))) + 1
    assert find_healing_rewrite(lambda off: False) is None
