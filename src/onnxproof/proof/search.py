"""What a search for a worse input did: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
