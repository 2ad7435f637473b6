"""Inputs of an architecture by the names of its parameters: random ones, other sizes, and chosen values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.faults.registry import ARCHITECTURES, DYNAMIC

Witness = Callable[[], dict[str, np.ndarray]]


def example(architecture: str) -> dict[str, np.ndarray]:
    """The example inputs, named."""
    module, inputs = ARCHITECTURES[architecture]()
    names = list(inspect.signature(module.forward).parameters)
    return {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}


def dims_of(architecture: str) -> dict[str, dict[int, str]]:
    """The dynamic dims: those named, or the first of every input."""
    return DYNAMIC.get(architecture) or {name: {0: "batch"} for name in example(architecture)}


def draw(architecture: str, seed: int = 0, scale: float = 1.0, **sizes: int) -> dict[str, np.ndarray]:
    """Standard normal floats, and integers between the least and the greatest of the example; no row is masked out."""
    generator = np.random.default_rng(seed)
    drawn = {}
    for name, value in example(architecture).items():
        shape = [sizes.get(dims_of(architecture).get(name, {}).get(i, ""), size) for i, size in enumerate(value.shape)]
        if value.dtype.kind == "f":
            drawn[name] = (generator.standard_normal(shape) * scale).astype(value.dtype)
        else:
            drawn[name] = generator.integers(int(value.min()), int(value.max()) + 1, shape).astype(value.dtype)
        if name == "mask":
            drawn[name][:, 0] = 1
    return drawn


def like(architecture: str, seed: int = 7, scale: float = 1.0, **sizes: int) -> Witness:
    """A witness drawn at random; `sizes` change dynamic dims by name."""
    return lambda: draw(architecture, seed, scale, **sizes)


def given(architecture: str, **values: Any) -> Witness:
    """A witness drawn at random, with chosen values for some inputs: an array, or one number for all elements."""

    def make() -> dict[str, np.ndarray]:
        drawn = draw(architecture, 7)
        for name, value in values.items():
            chosen = np.asarray(value, drawn[name].dtype)
            drawn[name] = np.full_like(drawn[name], chosen) if chosen.ndim == 0 else chosen
        return drawn

    return make
