"""Records ↔ JSON, for all of them alike.

A record is a frozen dataclass. Class variables say how its JSON differs from its fields: `PUBLISHED` names properties that are
written beside the fields (and left aside on reading), `OMITTED` names fields that are left out where they are None (all of a `Sparse`
record's), `ADDED` names fields that an earlier release did not always write, so that the schema does not ask for them. A field whose name ends in an
underscore is written without it, for words that are Python's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

LARGEST = 1.7976931348623157e308
# What JSON has; numpy's floats and torch's version are kinds of them.
LEAVES: tuple[type[bool | int | float | str], ...] = (bool, int, float, str)
T = TypeVar("T")

if TYPE_CHECKING:
    Number = float
else:

    class Number(float):
        """A measured number: NaN where there is none, which JSON knows as null. Any float will do where a record is made."""


class Sparse:
    """A record that leaves out all of its fields that are None."""


def encode(record: Any) -> str:
    """The record as JSON text, every number finite."""
    return msgspec.json.format(msgspec.json.encode(make_finite(to_plain(record))), indent=1).decode()


def decode(data: Any, kind: type[T]) -> T:
    """A record from plain data; fields of a later version are ignored, what does not fit is a `msgspec.ValidationError`."""
    return msgspec.convert(rename(data, kind), kind, dec_hook=read_number)


def read_number(kind: type, value: Any) -> Any:
    """How msgspec reads a `Number`."""
    if value is None:
        return Number("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"Expected `number | null`, got `{type(value).__name__}`")
    return Number(value)


def check_integers(value: Any, path: str = "$") -> None:
    """Raise a `msgspec.ValidationError` where a number is larger than any that a proof counts: Python would take it."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise msgspec.ValidationError(f"Number out of range - at `{path}`")
    if isinstance(value, dict):
        for key, item in value.items():
            check_integers(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_integers(item, f"{path}[{index}]")


def settle(record: T) -> T:
    """The record as it will be read back: what is not known is None or NaN as its field wants, infinities are finite."""
    return decode(make_finite(to_plain(record)), type(record))


def rename(data: Any, kind: Any) -> Any:
    """The data of a record with the names that its fields have in Python."""
    own = {key: name for key, name, _ in read_layout(kind) if key != name}
    return {own.get(key, key): value for key, value in data.items()} if own and isinstance(data, Mapping) else data


def to_plain(value: Any) -> Any:
    """The same data as JSON will have it: records with what they publish, no tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        written = ((key, getattr(value, name), omitted) for key, name, omitted in read_layout(type(value)))
        return {key: to_plain(item) for key, item, omitted in written if item is not None or not omitted}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [to_plain(item) for item in value]
    kind = next((kind for kind in LEAVES if isinstance(value, kind)), None)
    return value if kind is None else kind(value)


@cache
def read_layout(kind: Any) -> tuple[tuple[str, str, bool], ...]:
    """(Key in the JSON, attribute, whether it is left out where it is None), what is derived first."""
    omitted = [f.name for f in fields(kind) if f.default is None] if issubclass(kind, Sparse) else ()
    omitted = getattr(kind, "OMITTED", omitted)
    derived = [(name, name, False) for name in getattr(kind, "PUBLISHED", ())]
    return (*derived, *((f.name.rstrip("_"), f.name, f.name in omitted) for f in fields(kind)))


def make_finite(value: Any) -> Any:
    """The same data with NaN as null, infinities as the largest float and half characters as `?`: JSON has none of them."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return math.copysign(LARGEST, value) if math.isinf(value) else value
    if isinstance(value, Mapping):
        return {str(key): make_finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [make_finite(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
