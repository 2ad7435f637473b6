"""The one seam to whatever computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onnxproof.tensors.arrays import Arrays


class Runner(Protocol):
    """Anything that turns named arrays into named arrays. It must not change its inputs."""

    name: str

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """Compute."""


class FakeRunner:
    """A runner made of a function, for tests of everything above the seam."""

    def __init__(self, name: str, function: Callable[[Arrays], Mapping[str, Any]]) -> None:
        self.name = name
        self._function = function

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(value) for name, value in self._function(inputs).items()}
