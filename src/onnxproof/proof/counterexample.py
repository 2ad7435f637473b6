"""The smallest failing input, and where it is kept: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
