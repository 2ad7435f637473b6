"""What a finding is: the same record in every output format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Severity = Literal["block", "review", "note"]
Stage = Literal[
    "model",
    "capture",
    "translate",
    "simplify",
    "kernel",
    "optimize",
    "provider",
    "precision",
    "preprocess",
    "data",
    "export",
    "session",
    "run",
]
WEIGHT: dict[str, int] = {"note": 0, "review": 1, "block": 2}


@dataclass(frozen=True)
class Where:
    """The place a finding points to; what is not known stays None."""

    output: str | None = None
    case: str | None = None
    node: str | None = None
    module: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Finding:
    """One thing found, with its evidence and what to do about it."""

    code: str
    severity: Severity
    message: str
    where: Where = Where()
    stage: Stage | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    help: str = ""
    accepted: str | None = None
    known: str | None = None
    """Why it does not gate: the baseline has it, and it is not worse now."""

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return asdict(self)

    def accept(self, reason: str) -> Finding:
        """The same finding, known and accepted: it stays visible and no longer gates."""
        return replace(self, accepted=reason)

    def know(self, reason: str) -> Finding:
        """The same finding, known from a baseline: it stays visible and no longer gates."""
        return replace(self, known=reason)

    @property
    def weight(self) -> int:
        """0 for a note, an accepted or a known finding, 1 for a review, 2 for a block."""
        return 0 if self.accepted is not None or self.known is not None else WEIGHT[self.severity]

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Finding:
        """Read a finding back; fields of a later version are ignored."""
        known = {name: data[name] for name in Finding.__dataclass_fields__ if name in data and name != "where"}
        places = {
            name: value for name, value in (data.get("where") or {}).items() if name in Where.__dataclass_fields__
        }
        return Finding(where=Where(**places), **known)


@dataclass(frozen=True)
class Entry:
    """The catalogue's page about one code."""

    code: str
    title: str
    severity: Severity
    what: str
    why: str
    fix: str
    stage: Stage | None = None
    example: str = ""
    """What triggers it: a line of a model, a command, a state of the file."""
    near_miss: str = ""
    """What looks alike and is right."""
