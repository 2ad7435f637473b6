"""The user's own data: npz, npy, pt, safetensors, csv, parquet, or `file.py:name`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.errors import InputError, listed
from onnxproof.tensors.arrays import is_narrow_float

Table = dict[str, NDArray[Any]]
LABELS = ("labels", "y", "label", "target")
UNNAMED = ("X", "x", "data", "arr_0", "inputs")


def load_data(source: str) -> Table:
    """All arrays of a data file, by name."""
    path, colon, _ = source.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_object(source)
    file = Path(source)
    if not file.is_file():
        raise InputError(f"--data: there is no file {source}")
    readers = {".npz": _npz, ".npy": _npy, ".pt": _pt, ".safetensors": _safetensors, ".csv": _csv, ".parquet": _parquet}
    reader = readers.get(file.suffix)
    if reader is None:
        raise InputError(f"--data {source}: {file.suffix!r} is not known; expected {listed(readers)} or file.py:name")
    try:
        return reader(file)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"--data {source} cannot be read: {type(error).__name__}: {error}") from error


def select_inputs(table: Mapping[str, NDArray[Any]], inputs: Mapping[str, np.dtype[Any]]) -> Table:
    """One array per input of the model, by name; a single unnamed array is the first input."""
    if not inputs:
        raise InputError("--data: no input of the model has rows, they are all single numbers")
    first = next(iter(inputs))
    chosen = {name: np.asarray(table[name]) for name in inputs if name in table}
    if not chosen:
        rest = [name for name in table if name not in LABELS]
        unnamed = [name for name in rest if name in UNNAMED] or (rest if len(rest) == 1 else [])
        if unnamed:
            chosen[first] = np.asarray(table[unnamed[0]])
    missing = [name for name in inputs if name not in chosen]
    if missing:
        raise InputError(f"--data has no array for the input {listed(missing)}; it has {listed(table)}")
    counts = {name: len(array) for name, array in chosen.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        raise InputError(f"--data: the inputs have different numbers of rows, or none: {counts}")
    return {name: _as_dtype(name, array, inputs[name]) for name, array in chosen.items()}


def stratified(labels: NDArray[Any]) -> NDArray[np.intp] | None:
    """Rows in an order that takes one of every label, then a second one of every label, and so on; None without classes."""
    if labels.ndim != 1 or not labels.size:
        return None
    classes, codes = np.unique(labels, return_inverse=True)
    if not 2 <= len(classes) <= min(1000, len(labels) // 2):
        return None
    turn = np.zeros(len(labels), np.intp)
    for code in range(len(classes)):
        places = np.flatnonzero(codes == code)
        turn[places] = np.arange(len(places))
    return np.lexsort((codes, turn))


def _as_dtype(name: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if array.dtype == dtype:
        return array
    # Floats are rounded as the model would; the exact comparison is left for integers, it costs a pass over the data.
    if array.dtype.kind in "fiub" and (dtype.kind == "f" or is_narrow_float(dtype)):
        return array.astype(dtype)
    if array.dtype.kind in "fiub" and np.array_equal(array.astype(dtype), array):
        return array.astype(dtype)
    raise InputError(
        f"--data: {name} holds {array.dtype} and the model takes {dtype}: convert it first, values would be lost"
    )


def _npz(file: Path) -> Table:
    with np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _npy(file: Path) -> Table:
    return {"X": np.load(file, allow_pickle=False)}


def _pt(file: Path) -> Table:
    import torch

    return _tabulate(torch.load(file, map_location="cpu", weights_only=True))


def _safetensors(file: Path) -> Table:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise InputError("reading safetensors needs the package safetensors: pip install 'onnxproof[data]'") from None
    return dict(load_file(file))


def _csv(file: Path) -> Table:
    rows = np.genfromtxt(file, delimiter=",", names=True, dtype=None, encoding="utf-8")
    names = rows.dtype.names
    if not names:
        raise InputError(f"--data {file}: expected a header line with the columns' names")
    return _columns({name: np.atleast_1d(rows[name]) for name in names})


def _parquet(file: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError("reading parquet needs the package pyarrow: pip install 'onnxproof[data]'") from None
    table = parquet.read_table(file)
    return _columns({name: _column(table[name].to_pylist()) for name in table.column_names})


def _column(values: Sequence[Any]) -> NDArray[Any]:
    return np.array(values)


def _columns(columns: Table) -> Table:
    """Columns, and all numeric ones together as the vector `X`."""
    features = [c for name, c in columns.items() if name not in LABELS and c.ndim == 1 and c.dtype.kind in "fiub"]
    return {
        **columns,
        **({"X": np.stack(features, axis=1).astype(np.float32)} if features and "X" not in columns else {}),
    }


def _from_object(source: str) -> Table:
    from onnxproof.subject.subject import load_target

    value, _ = load_target(source)
    value = value() if callable(value) and not hasattr(value, "__iter__") else value
    if not isinstance(value, (Mapping, np.ndarray)) and isinstance(value, Iterable) and not hasattr(value, "shape"):
        return _gather(list(value))
    return _tabulate(value)


def _tabulate(value: Any) -> Table:
    if isinstance(value, Mapping):
        return {str(name): np.asarray(array) for name, array in value.items()}
    if isinstance(value, (tuple, list)):
        return _gather([value]) if value and hasattr(value[0], "shape") else _gather(list(value))
    return {"X": np.asarray(value)}


def _gather(batches: Sequence[Any]) -> Table:
    """Batches of a loader: dicts, (inputs, labels) pairs, or arrays."""
    if not batches:
        return {}
    if isinstance(batches[0], Mapping):
        return {str(k): np.concatenate([np.asarray(b[k]) for b in batches]) for k in batches[0]}
    if isinstance(batches[0], (tuple, list)):
        names = ["X", "labels"] if len(batches[0]) == 2 else ["X", *(f"X{i}" for i in range(1, len(batches[0])))]
        return {n: np.concatenate([np.atleast_1d(np.asarray(b[i])) for b in batches]) for i, n in enumerate(names)}
    return {"X": np.stack([np.asarray(b) for b in batches])}
