"""Readers: a value as a flag, a keyword, a key or a variable gives it → the typed value of its option."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxproof.request.option import Expected, Read, option

ON, OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
TIMES = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
BYTES = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "K": 1e3, "M": 1e6, "G": 1e9}
# What clocks, counters and shapes of other libraries hold: seconds and bytes, numbers of anything, and what runs at once.
MOST_TIME, MOST_BYTES, MOST, AT_ONCE = 3.6e7, 1e18, 2**31 - 1, 1024


def switch(value: Any) -> bool:
    """true or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ON + OFF:
        return value.lower() in ON
    raise Expected("true or false")


def negated(value: Any) -> bool:
    """For a flag that says what is left out."""
    return not switch(value)


def flag(default: bool, help: str, read: Read = switch, **how: Any) -> Any:
    """An option whose flag stands alone."""
    return option(default, help, read, alone=True, **how)


def text(value: Any) -> str:
    """Text, or a path."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise Expected("text")


def whole(least: int | None = None, most: int = MOST) -> Read:
    """A whole number: any, or one from the least to the most."""
    expected = "a number" if least is None else f"a number from {least} to {most:,}"

    def read(value: Any) -> int:
        try:
            number = int(value) if not isinstance(value, (bool, float)) else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or (least is not None and not least <= number <= most):
            raise Expected(expected)
        return number

    return read


def number(fits: Callable[[float], bool] = lambda value: True, expected: str = "a number") -> Read:
    """A number that fits."""

    def read(value: Any) -> float:
        try:
            found = float(value) if not isinstance(value, bool) else float("nan")
        except (TypeError, ValueError, OverflowError):
            raise Expected(expected) from None
        if found != found or not fits(found):
            raise Expected(expected)
        return found

    return read


def one_of(*known: str) -> Read:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in known:
            raise Expected(f"one of {', '.join(known)}")
        return str(value)

    return read


def seconds(value: Any) -> float:
    """Seconds, or `30s`, `2m`, `500ms`."""
    return _quantify(value, TIMES, MOST_TIME, "a time such as 30s, 2m or 500ms, at most 10,000h")


def size(value: Any) -> int:
    """Bytes, or `512MB`, `2GB`."""
    plain = value.upper() if isinstance(value, str) else value
    return int(_quantify(plain, BYTES, MOST_BYTES, "a size such as 512MB or 2GB, at most 1,000,000,000GB"))


def _quantify(value: Any, units: Mapping[str, float], most: float, expected: str) -> float:
    plain = value.strip() if isinstance(value, str) else value
    unit = next((unit for unit in units if isinstance(plain, str) and plain.endswith(unit)), "")
    try:
        found = float(plain.removesuffix(unit) if unit else plain) * units.get(unit, 1.0)
    except (TypeError, ValueError, OverflowError):
        raise Expected(expected) from None
    if not 0 <= found <= most or isinstance(value, bool):
        raise Expected(expected)
    return found


def sizes(value: Any) -> tuple[int, ...]:
    """`1,2,7,32`, or a list of numbers."""
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    try:
        found = tuple(int(part) for part in parts)
    except (TypeError, ValueError, OverflowError):
        raise Expected("numbers such as 1,2,7,32") from None
    if not all(0 <= size <= MOST for size in found):
        raise Expected(f"sizes of 0 or more, at most {MOST:,}")
    return found


def texts(value: Any) -> tuple[str, ...]:
    """One text or several."""
    return tuple(text(one) for one in make_list(value))


def words(value: Any) -> tuple[str, ...]:
    """`ok,fraud`, or a list."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(str(part).strip() for part in make_list(parts))


def each(parse: Callable[[str], Any]) -> Read:
    """One text or several, each parsed; what is a value already stays."""
    return lambda value: tuple(_parse_part(parse, one) if isinstance(one, str) else one for one in make_list(value))


def named(parse: Callable[[str], tuple[str, Any]], entry: Callable[[Any], Any], example: str) -> Read:
    """`name:value` texts, or a mapping of names."""

    def read(value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return {str(name): _parse_part(entry, one) for name, one in value.items()}
        if not isinstance(value, (str, list, tuple)):
            raise Expected(f"a mapping such as {example}")
        return dict(_parse_part(parse, str(one)) for one in make_list(value))

    return read


def _parse_part(parse: Callable[[Any], Any], value: Any) -> Any:
    """One of several: it is the one that is named if it is wrong."""
    try:
        return parse(value)
    except Expected as error:
        raise Expected(str(error), value) from None


def make_list(value: Any) -> Sequence[Any]:
    """The value, or the one that it is."""
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, (list, tuple, set, frozenset)):
        return [value]
    return list(value)
