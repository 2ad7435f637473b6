"""What a finding is: the same record in every output format; and the verdict that findings give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import msgspec

from onnxproof.findings.catalogue import CATALOGUE, look_up
from onnxproof.findings.entry import OFFER, Entry, Severity, Stage

WEIGHT: dict[str, int] = {"note": 0, "review": 1, "block": 2}
Verdict = Literal["ship", "review", "block"]
VERDICTS: tuple[Verdict, ...] = ("ship", "review", "block")


@dataclass(frozen=True)
class Where:
    """The place a finding points to; what is not known stays None."""

    ADDED: ClassVar = ("output", "case", "node", "module", "file", "line")
    """What a proof of the first release may leave out."""

    output: str | None = None
    case: str | None = None
    node: str | None = None
    module: str | None = None
    file: str | None = None
    line: int | None = None


class Element(msgspec.Struct, frozen=True):
    """An element of an output: where it is, and what each side says."""

    index: list[int]
    baseline: bool | float | str | None
    candidate: bool | float | str | None


class Kept(msgspec.Struct, frozen=True):
    """A counterexample."""

    file: str
    shapes: dict[str, list[int]]
    text: str | None = None
    script: str | None = None


class SharedEvidence(msgspec.Struct, frozen=True):
    """The form of what reports read in any finding's evidence; all else in it is the code's own."""

    worst: list[Element] | None = None
    cases: list[str] | None = None
    case_count: int = 1
    counterexample: Kept | None = None


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

    @property
    def entry(self) -> Entry:
        """What the catalogue knows about its code."""
        return look_up(self.code)

    @property
    def weight(self) -> int:
        """0 for a note, an accepted or a known finding, 1 for a review, 2 for a block."""
        return 0 if self.accepted is not None or self.known is not None else WEIGHT[self.severity]

    @property
    def measure(self) -> float | None:
        """How large the difference is that it speaks of, where its code has a size."""
        return self._read_number(self.entry.measure)

    @property
    def excess(self) -> float | None:
        """How far it is beyond what rounding explains, 1 being the border; None where rounding is not in question."""
        return self._read_number(self.entry.excess)

    def _read_number(self, path: str) -> float | None:
        value: Any = self.evidence
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value if isinstance(value, (int, float)) else None

    def accept(self, reason: str) -> Finding:
        """The same finding, known and accepted: it stays visible and no longer gates, where its code allows that."""
        return replace(self, accepted=reason) if self.entry.acceptable else self

    def know(self, reason: str) -> Finding:
        """The same finding, known from a baseline: it stays visible and no longer gates, where its code allows that."""
        return replace(self, known=reason) if self.entry.acceptable else self

    def without_offer(self) -> Finding:
        """The same finding where `--heal` was tried already."""
        return replace(self, help=self.help.removesuffix(OFFER))


def found(
    code: str,
    message: str,
    *,
    where: Where | None = None,
    severity: Severity | None = None,
    stage: Stage | None = None,
    evidence: Mapping[str, Any] | None = None,
    help: str | None = None,
) -> Finding:
    """A finding of the catalogue; what is not given comes from its entry."""
    entry = CATALOGUE[code]
    return Finding(
        code=code,
        severity=severity or entry.severity,
        message=message,
        where=where or Where(),
        stage=stage or entry.stage,
        evidence=dict(evidence or {}),
        help=help if help is not None else entry.help,
    )


def decide_verdict(findings: Iterable[Finding]) -> Verdict:
    """The worst finding that gates decides."""
    return VERDICTS[max((finding.weight for finding in findings), default=0)]
