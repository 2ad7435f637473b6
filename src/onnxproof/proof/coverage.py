"""How far the generated cases reach, compared with the user's data: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Coverage:
    """One input: the range of the data, the range of the cases, and the share of the data that lies where cases have been."""

    OMITTED: ClassVar = ("data_low", "data_high", "generated_low", "generated_high")

    share: float = 0.0
    data_low: float | None = None
    data_high: float | None = None
    generated_low: float | None = None
    generated_high: float | None = None
