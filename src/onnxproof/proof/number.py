"""A measured number: NaN where there is none, which JSON knows as null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Number = float
else:

    class Number(float):
        """Read from a number or null; any float will do where a record is made."""


def read_number(kind: type, value: Any) -> Any:
    """How msgspec reads it."""
    if value is None:
        return Number("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"Expected `number | null`, got `{type(value).__name__}`")
    return Number(value)
