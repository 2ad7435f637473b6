"""What does not depend on the candidate, computed once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from onnxproof.errors import Rejected

T = TypeVar("T")
# Bytes of arrays that are remembered; what does not fit is computed each time.
ROOM = 1 << 29


class Memo:
    """Answers by question, a refusal being one too."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._known: dict[Hashable, Any] = {}

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The answer, computed when it is first asked for. Whoever takes it leaves it as it is."""
        if question not in self._known:
            try:
                value: Any = answer()
            except Rejected as error:
                value = error
            size = _count_bytes(value)
            if size > self._room:
                return cast(T, _give(value))
            self._room -= size
            self._known[question] = value
        return cast(T, _give(self._known[question]))


def _give(value: Any) -> Any:
    if isinstance(value, Rejected):
        raise value
    return value


def _count_bytes(value: Any) -> int:
    arrays = value.values() if isinstance(value, Mapping) else ()
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
