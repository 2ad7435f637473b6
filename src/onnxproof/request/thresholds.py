"""The thresholds: what a user may promise or change, as plain data without an opinion of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxproof.errors import UserError
from onnxproof.findings import CATALOGUE, Severity, entry_of


@dataclass(frozen=True)
class Tolerance:
    """The contract for one output: |difference| ≤ atol + rtol·|baseline|, and ≤ max_abs."""

    atol: float = 1e-4
    rtol: float = 1e-3
    max_abs: float = 1e-3
    promised: bool = False
    """Whether the user gave it. A promise binds; the defaults yield to rounding."""


@dataclass(frozen=True)
class LatencyPolicy:
    """Limits. Those that are given bind; the others are opinions."""

    good_ms: float = 10.0
    bad_ms: float = 100.0
    max_latency: Mapping[str, float] = field(default_factory=dict)
    """Percentile → milliseconds."""
    min_speedup: float | None = None
    max_memory: int | None = None
    regression: float = 1.05
    """How many times slower than the baseline counts as slower, beyond both intervals."""


@dataclass(frozen=True)
class QualityPolicy:
    """The thresholds for task quality."""

    minimum: Mapping[str, float] = field(default_factory=dict)
    """Metric (`recall`, `recall[fraud]`) → what the candidate must reach."""
    maximum: Mapping[str, float] = field(default_factory=dict)
    """Metric → what the candidate must not exceed: for errors and losses."""
    max_drop: Mapping[str, float] = field(default_factory=dict)
    """Metric → by how much the candidate may be worse than the baseline."""
    accuracy: float = 0.8
    default_drop: float = 0.01
    rare: float = 0.1
    """Share of the examples below which a class is rare, if it is also below three quarters of an equal share."""
    rare_recall: float = 0.5
    imbalanced: float = 0.9
    beyond: float = 10.0
    """Times what rounding may do to a score from which on a difference is told."""
    most_rare: int = 5
    """Classes that get a finding of their own."""


@dataclass(frozen=True)
class Known:
    """A finding of a baseline: what it says, about what, and how large."""

    code: str
    severity: Severity
    output: str | None = None
    module: str | None = None
    node: str | None = None
    stage: str | None = None
    measure: float | None = None


@dataclass(frozen=True)
class Policy:
    """The thresholds."""

    tolerance: Tolerance = Tolerance()
    outputs: Mapping[str, Tolerance] = field(default_factory=dict)
    noise: float = 10.0
    """How many times farther from the truth than PyTorch onnxruntime may be."""
    accept: Mapping[str, str] = field(default_factory=dict)
    """Code → the reason why findings of that code are accepted."""
    latency: LatencyPolicy = LatencyPolicy()
    known: tuple[Known, ...] = ()
    """What a baseline found: it gates only where it got worse."""
    quality: QualityPolicy = QualityPolicy()

    def __post_init__(self) -> None:
        for code in self.accept:
            if code not in CATALOGUE:
                raise UserError(f"accept {code}: there is no such code; `onnxproof explain --all` lists them")
            if not entry_of(code).acceptable:
                raise UserError(f"accept {code}: {entry_of(code).unacceptable}, so it cannot be accepted")

    def for_output(self, output: str) -> Tolerance:
        """The contract for one output."""
        return self.outputs.get(output, self.tolerance)
