"""A candidate made of a function: it drives the tests of everything above the seam."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.candidates.candidate import Abilities, Call, Outputs
from onnxproof.candidates.exchange import check_providers
from onnxproof.errors import FindingError
from onnxproof.findings import Finding
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.tensors.arrays import Arrays

Function = Callable[[Arrays, SessionSettings], Mapping[str, Any]]
"""Inputs under the graph's names, and the settings of the session → outputs under the graph's names."""


@dataclass
class FakeCandidate:
    """Answers by a function, which may raise what a session raises."""

    function: Function
    outputs: Sequence[str] = ("output",)
    abilities: Abilities = Abilities()
    name: str = "fake"
    available: Sequence[str] = (CPU.name,)
    placed: Finding | None = None
    refused: Finding | None = None
    """Why it opens no file, if it opens none."""
    opened: list[tuple[Path | bytes, SessionSettings]] = field(default_factory=list)
    """What it was asked to open."""

    def versions(self) -> Mapping[str, str]:
        return {"onnxruntime": self.name}

    def providers(self) -> Sequence[str]:
        return self.available

    def open(
        self, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None
    ) -> FakeSession:
        check_providers(settings.providers, self.available, self.name)
        self.opened.append((model, settings))
        if self.refused is not None:
            raise FindingError(self.refused)
        return FakeSession(self, settings, renamed or {})


class FakeSession:
    """A session of a fake."""

    def __init__(self, candidate: FakeCandidate, settings: SessionSettings, renamed: Mapping[str, str]) -> None:
        self._candidate, self._settings, self._names = candidate, settings, {n: g for g, n in renamed.items()}

    @property
    def outputs(self) -> Sequence[str]:
        return self._candidate.outputs

    def run(self, inputs: Arrays) -> Outputs:
        given = {self._names.get(name, name): array.copy() for name, array in inputs.items()}
        return {n: np.asarray(v) for n, v in self._candidate.function(given, self._settings).items()}

    def placement(self) -> Finding | None:
        return self._candidate.placed

    def close(self) -> None:
        return

    def prepare(self, inputs: Arrays, *, bound: bool = False) -> Call:
        return Call(lambda: self.run(inputs), lambda answer: dict(answer))
