"""What is computed once for all candidates."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import Rejected
from onnxproof.parity.memo import Memo


def test_an_answer_is_computed_once():
    asked = []
    memo = Memo()
    for _ in range(2):
        assert memo.once(("case", "truth"), lambda: asked.append(1)) is None
        assert memo.once(("case", "baseline"), lambda: asked.append(2) or 7) == 7
    assert asked == [1, 2]


def test_a_refusal_is_an_answer_and_any_other_error_is_none():
    asked = []

    def refuse(error):
        asked.append(error)
        raise error

    memo = Memo()
    for error in (Rejected("no"), MemoryError("much")):
        for _ in range(2):
            with pytest.raises(type(error)):
                memo.once(type(error), lambda error=error: refuse(error))
    assert [type(error) for error in asked] == [Rejected, MemoryError, MemoryError]


def test_what_does_not_fit_is_computed_each_time():
    asked = []
    memo = Memo(room=100)
    for _ in range(2):
        memo.once("small", lambda: asked.append("small") or {"x": np.zeros(20, np.float32)})
        memo.once("large", lambda: asked.append("large") or {"x": np.zeros(20, np.float32)})
    assert asked == ["small", "large", "large"]
