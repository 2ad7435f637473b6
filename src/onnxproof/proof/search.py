"""What was looked at besides the planned cases, and what came of it: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxproof.proof.codec import Sparse


@dataclass(frozen=True)
class Search:
    """Inputs tried, regimes reached, and how near it came."""

    budget: float
    seconds: float = 0.0
    inputs: int = 0
    rows: int = 0
    regimes: int = 0
    reached: int = 0
    worst: float = 0.0
    """How near the worst input is to what rounding cannot explain; 1 is the border."""
    moves: Mapping[str, int] = field(default_factory=dict)
    found: str | None = None
    """The name of the failing input."""


@dataclass(frozen=True)
class Counterexample:
    """A failing input. `text` has it in full where it fits one line."""

    name: str
    code: str
    output: str | None
    case: str
    """The case it was shrunk from."""
    file: str
    script: str | None = None
    text: str | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    evaluations: int = 0


@dataclass(frozen=True)
class Coverage(Sparse):
    """One input: the range of the data, the range of the cases, and the share of the data that lies where cases have been."""

    share: float = 0.0
    data_low: float | None = None
    data_high: float | None = None
    generated_low: float | None = None
    generated_high: float | None = None
