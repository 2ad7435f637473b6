"""Who is to blame: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from onnxproof.findings import Stage


@dataclass(frozen=True)
class Culprit:
    """A node that introduces an error of its own (not one that it inherits), and where it comes from."""

    node: str
    op: str
    introduced: float
    """Error of its output relative to the output's scale when it is fed the true inputs."""
    module: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Blame:
    """The step and the nodes; `rewrite` is the onnxruntime optimisation that has to be switched off to heal it."""

    stage: Stage | None
    culprits: tuple[Culprit, ...] = ()
    rewrite: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The blame as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Blame:
        """Read a blame back."""
        return Blame(data["stage"], tuple(Culprit(**c) for c in data["culprits"]), data["rewrite"])
