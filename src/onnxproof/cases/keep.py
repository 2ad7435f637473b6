"""Counterexamples on disk: one npz per counterexample, one array per input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.domain import Domain

Inputs = Mapping[str, NDArray[Any]]


def write(file: Path, inputs: Inputs) -> None:
    """Keep some inputs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **dict(inputs))


def read(file: Path) -> dict[str, NDArray[Any]]:
    """The inputs of a counterexample; none where the file is not one."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError):
        return {}


def kept(folder: Path) -> list[Path]:
    """The counterexamples in a folder."""
    return sorted(file for file in folder.glob("*.npz") if not file.name.startswith("."))


def fits(inputs: Inputs, domains: Sequence[Domain]) -> bool:
    """Whether these are inputs of this subject (another subject may keep its own in the same folder), inside its ranges."""
    return inputs.keys() == {d.name for d in domains} and all(_fits(inputs[d.name], d) for d in domains)


def _fits(array: NDArray[Any], domain: Domain) -> bool:
    if array.dtype != domain.dtype or array.ndim != len(domain.shape):
        return False
    if any(i not in domain.dims and size != domain.shape[i] for i, size in enumerate(array.shape)):
        return False
    if not domain.declared or domain.valid is None or not array.size:
        return True
    return bool((array >= domain.valid.low).all() and (array <= domain.valid.high).all())
