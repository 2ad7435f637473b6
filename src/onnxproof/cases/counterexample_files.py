"""Counterexamples on disk: one npz per counterexample, one array per input."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from onnxproof.cases.domain import Domain
from onnxproof.cases.shapes import is_served
from onnxproof.files import replacing
from onnxproof.tensors.arrays import Array

Inputs = Mapping[str, Array]


def write(file: Path, inputs: Inputs, *, lasting: bool = True) -> None:
    """Keep some inputs."""
    # Not np.savez: it takes names as keywords, and an input called `file` is one of its own.
    with replacing(file, lasting=lasting) as half, zipfile.ZipFile(half, "w") as archive:
        for name, array in inputs.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, _view_bytes(array), allow_pickle=False)


def read(file: Path) -> dict[str, Array]:
    """The inputs of a counterexample; none where the file is not one."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except MemoryError:
        raise
    except Exception:
        return {}  # cut off, empty, or no npz at all


def holds(file: Path, inputs: Inputs) -> bool:
    """Whether these inputs are the ones in a file, bit for bit."""
    kept, wanted = read(file), {name: _view_bytes(array) for name, array in inputs.items()}
    return kept.keys() == wanted.keys() and all(
        (kept[n].dtype, kept[n].shape, kept[n].tobytes()) == (a.dtype, a.shape, a.tobytes()) for n, a in wanted.items()
    )


def _view_bytes(array: Array) -> Array:
    """What npz cannot hold (bfloat16 and the like) as the same bytes."""
    foreign = array.dtype.kind == "V" or array.dtype.isbuiltin == 2
    return np.array(array, order="C").view(f"V{array.dtype.itemsize}") if foreign else np.asarray(array)


def cast_to_domains(inputs: Inputs, domains: Sequence[Domain]) -> dict[str, Array]:
    """The inputs in the dtypes of the domains, where npz has lost them."""
    dtypes = {d.name: d.dtype for d in domains}
    return {n: a.view(dtypes[n]) if a.dtype.kind == "V" and n in dtypes else a for n, a in inputs.items()}


def read_folder(folder: Path) -> list[Path]:
    """The counterexamples in a folder."""
    return sorted(file for file in folder.glob("*.npz") if not file.name.startswith("."))


def fits(inputs: Inputs, domains: Sequence[Domain]) -> bool:
    """Whether these are inputs of this subject (another subject may keep its own in the same folder), inside its ranges."""
    return inputs.keys() == {d.name for d in domains} and all(_fits(inputs[d.name], d) for d in domains)


def _fits(array: Array, domain: Domain) -> bool:
    if array.dtype != domain.dtype or array.ndim != len(domain.shape):
        return False
    if any(i not in domain.dims and size != domain.shape[i] for i, size in enumerate(array.shape)):
        return False
    if not is_served({size: array.shape[i] for i, size in domain.dims.items()}, domain.limits):
        return False
    if not domain.declared or domain.valid is None or not array.size:
        return True
    return bool((array >= domain.valid.low).all() and (array <= domain.valid.high).all())
