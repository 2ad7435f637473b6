"""Which field of a data set is what."""

from __future__ import annotations

from collections.abc import Iterable

from onnxproof.cases.data import LABELS
from onnxproof.errors import InputError, listed

IDS = ("id", "ids", "example_id", "row_id", "uuid")


def find_field(
    fields: Iterable[str], given: str | None, usual: Iterable[str], taken: Iterable[str], flag: str
) -> str | None:
    """The field that a flag names, or the first usual one that is no input of the model."""
    names = list(fields)
    if given is not None:
        if given not in names:
            raise InputError(f"{flag}: the data have no field {given!r}; they have {listed(names)}")
        return given
    inputs = set(taken)
    return next((name for name in usual if name in names and name not in inputs), None)


def find_labels(fields: Iterable[str], given: str | None, taken: Iterable[str]) -> str | None:
    """The field with the labels."""
    return find_field(fields, given, LABELS, taken, "--labels")
