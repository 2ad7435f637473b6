"""Which field of the data is what: inputs of the model, labels, ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from onnxproof.data.source import Kind, Table, is_numeric, read_kinds
from onnxproof.errors import InputError, list_names
from onnxproof.tensors.arrays import Array, is_narrow_float

LABELS = ("labels", "y", "label", "target")
BOXES = ("boxes", "bboxes")
IDS = ("id", "ids", "example_id", "row_id", "uuid")
# Names of an array that nobody named: it is the first input.
UNNAMED = ("X", "x", "data", "arr_0", "inputs")


def find_field(
    fields: Iterable[str], given: str | None, usual: Iterable[str], taken: Iterable[str], flag: str
) -> str | None:
    """The field that a flag names, or the first usual one that is no input of the model."""
    names, inputs = list(fields), set(taken)
    if given is not None and given not in names:
        raise InputError(f"{flag}: the data have no field {given!r}; they have {list_names(names)}")
    return given or next((name for name in usual if name in names and name not in inputs), None)


def choose_fields(fields: Mapping[str, Kind], inputs: Iterable[str], label: str) -> dict[str, tuple[str, ...]]:
    """Input → the field that holds it, or the columns that together do: all numbers of a table are the first input."""
    wanted = list(inputs)
    if not wanted:
        raise InputError(f"{label}: no input of the model has rows, they are all single numbers")
    chosen: dict[str, tuple[str, ...]] = {name: (name,) for name in wanted if name in fields}
    if not chosen and (unnamed := _guess_fields(fields)):
        chosen[wanted[0]] = unnamed
    missing = [name for name in wanted if name not in chosen]
    if missing:
        raise InputError(f"{label} has no array for the input {list_names(missing)}; it has {list_names(fields)}")
    return chosen


def _guess_fields(fields: Mapping[str, Kind]) -> tuple[str, ...]:
    if len(fields) == 1:
        return tuple(fields)
    vectors = [name for name, kind in fields.items() if kind == "vector"]
    if not vectors:
        return tuple(name for name, kind in fields.items() if kind == "number")
    usual = [name for name in fields if name in UNNAMED]
    return tuple(usual[:1] or (vectors if len(vectors) == 1 else []))


def select_inputs(table: Table, examples: Mapping[str, Array], label: str = "--data") -> Table:
    """One array per input of the model, with the dtype and rank of its example."""
    chosen = choose_fields(read_kinds(table), examples, label)
    inputs = {name: _join([table[field] for field in fields], examples[name]) for name, fields in chosen.items()}
    counts = {name: len(array) for name, array in inputs.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        raise InputError(f"{label}: the inputs have different numbers of rows, or none: {counts}")
    return {name: cast(array, examples[name].dtype, f"{label}: {name}") for name, array in inputs.items()}


def _join(columns: list[Array], example: Array) -> Array:
    """Columns as one vector per row; a single one is what it is, or a vector of one where the model takes vectors."""
    several = len(columns) > 1 or (columns[0].ndim == 1 and example.ndim == 2)
    return np.stack(columns, axis=1) if several else columns[0]


def cast(array: Array, dtype: np.dtype[Any], told: str) -> Array:
    """The same values as the model takes them."""
    if array.dtype == dtype:
        return array
    # Floats are rounded as the model would; the exact comparison is left for integers, it costs a pass over the data.
    if is_numeric(array.dtype) and (dtype.kind == "f" or is_narrow_float(dtype)):
        return array.astype(dtype)
    with np.errstate(invalid="ignore"):
        if is_numeric(array.dtype) and np.array_equal(array.astype(dtype), array):
            return array.astype(dtype)
    missing = array.dtype.kind == "f" and np.isnan(array).any()
    why = "it has missing values (NaN)" if missing else "convert it first, values would be lost"
    raise InputError(f"{told} holds {array.dtype} and the model takes {dtype}: {why}")


def describe_columns(fields: Mapping[str, Kind]) -> str:
    """Which columns of a table became the input, and which were left out."""
    if len(fields) < 2:
        return ""
    taken = [name for name, kind in fields.items() if kind == "number"]
    left = [name for name in fields if name not in taken]
    return f"; its columns are {list_names(taken if len(taken) <= 24 else [*taken[:12], '…', *taken[-4:]])}" + (
        f", left out are {list_names(left[:6])}" if left else ""
    )
