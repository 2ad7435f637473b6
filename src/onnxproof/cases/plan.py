"""The plan: which cases, in which order. A case's name is enough to make its inputs again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases import shapes
from onnxproof.cases.domain import Domain
from onnxproof.cases.values import PROFILES, UNFAIR, fill

Inputs = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """One named set of inputs."""

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    profile: str = "normal"
    fair: bool = True
    rows: tuple[int, int] | None = None
    """For a case of the user's data: first row and count."""


def generated(sizes: Mapping[str, int], profile: str, seed: int = 0) -> Case:
    """A case by its parts."""
    where = ",".join(f"{name}={size}" for name, size in sizes.items()) or "static"
    return Case(f"{where}/{profile}/seed={seed}", dict(sizes), profile, profile not in UNFAIR)


def make_plan(
    exported: Mapping[str, int], batch_sizes: Sequence[int] | None, *, floats: bool, seed: int = 0, batch: str = "batch"
) -> list[Case]:
    """The smallest size (where the costly checks learn what they cost), the example, then values at a small size, then sizes,
    then inputs outside the fair range; cheap before dear."""
    if batch_sizes is not None and not batch_sizes:
        return []
    sweep = shapes.sweep(exported, batch_sizes, batch)
    base, near = sweep[0], shapes.small(exported, batch_sizes, batch)
    others = sorted(sweep[1:], key=lambda sizes: float(np.prod(list(sizes.values()))))
    least = min([*others[:1], base], key=lambda sizes: float(np.prod(list(sizes.values()))))
    plan = [
        generated(sizes, profile, seed) for sizes, profile in ((least, "normal"), (base, "example"), (base, "normal"))
    ]
    plan += [generated(near, profile, seed) for profile in PROFILES]
    for i, sizes in enumerate(others):
        plan.append(generated(sizes, "normal", seed))
        plan.append(generated(sizes, PROFILES[1 + i % (len(PROFILES) - 1)], seed))
    # Constants of the graph are hit by chance: one large case more.
    plan += [generated(sizes, "hints", seed) for sizes in others[-2:]]
    if floats:
        plan += [generated(near, profile, seed) for profile in UNFAIR]
    return list({case.name: case for case in plan}.values())


def make_inputs(case: Case, domains: Sequence[Domain]) -> Inputs:
    """The inputs of a generated case: the same for the same name."""
    return {domain.name: _make(case, domain) for domain in domains}


def _make(case: Case, domain: Domain) -> NDArray[Any]:
    shape = domain.sized(case.sizes)
    if case.profile == "example":
        return resized(domain, shape)
    generator = np.random.default_rng(zlib.crc32(f"{case.name}\0{domain.name}".encode()))
    return fill(domain, case.profile, shape, generator)


def resized(domain: Domain, shape: tuple[int, ...]) -> NDArray[Any]:
    """The example, repeated or cut along each dimension."""
    array = domain.example
    assert array is not None  # domains of a subject come from its example
    for axis, size in enumerate(shape):
        if array.shape[axis] and array.shape[axis] != size:
            array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
    return np.ascontiguousarray(array).reshape(shape)
