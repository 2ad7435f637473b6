"""The plan: which cases, in which order. A case's name is enough to make its inputs again."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from onnxproof.cases import shapes
from onnxproof.cases.domain import Domain
from onnxproof.cases.values import PROFILES, UNFAIR, fill
from onnxproof.tensors.arrays import Array

Inputs = dict[str, Array]
# Values that no memory holds; numpy calls as many an error of its caller.
LARGEST = 1 << 50


@dataclass(frozen=True)
class Case:
    """One named set of inputs."""

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    profile: str = "normal"
    fair: bool = True
    rows: tuple[int, int] | None = None
    """For a case of the user's data: first row and count."""
    repeated: int = 0
    """How many of its first rows are the last ones of the case before it."""
    file: str | None = None
    """For a counterexample that was kept: where its inputs are."""
    core: bool = False
    """Whether a plan without it is none: the example, the user's data, every kind of values, another size."""


def make_case(sizes: Mapping[str, int], profile: str, seed: int = 0) -> Case:
    """A case by its parts."""
    where = ",".join(f"{name}={size}" for name, size in sizes.items()) or "static"
    return Case(f"{where}/{profile}/seed={seed}", dict(sizes), profile, profile not in UNFAIR)


def make_plan(
    exported: Mapping[str, int],
    batch_sizes: Sequence[int] | None,
    *,
    floats: bool,
    seed: int = 0,
    batch: str = "batch",
    bounds: shapes.Bounds | None = None,
    limits: shapes.Limits | None = None,
    sampled: bool = False,
    empty: bool = False,
) -> list[Case]:
    """The smallest size (where the costly checks learn what they cost), the example, then values at a small size, then sizes,
    then inputs outside the fair range; cheap before dear. `limits`: sizes that are served, nothing outside
    is tried; `sampled`: values like the user's data are tried too; `empty`: an empty batch too."""
    if batch_sizes is not None and not batch_sizes:
        return []
    limits = limits or {}
    sweep = shapes.sweep_sizes(exported, batch_sizes, batch, {**(bounds or {}), **limits})
    sweep = [sizes for sizes in sweep if shapes.is_served(sizes, limits)]
    if not sweep:
        return []
    base, near = sweep[0], shapes.clamp_sizes(shapes.shrink_batch(exported, batch_sizes, batch), limits)
    others = sorted(sweep[1:], key=_measure_volume)
    least = min([*others[:1], base], key=_measure_volume)
    profiles = (*PROFILES, "like-data") if sampled else PROFILES
    wanted = [(least, "normal"), (base, "example"), (base, "normal"), *((near, profile) for profile in profiles)]
    core = len(wanted)
    for i, sizes in enumerate(others):
        wanted.append((sizes, "normal"))
        if sum(sizes[name] != base[name] for name in sizes) <= 1:
            wanted.append((sizes, profiles[1 + i % (len(profiles) - 1)]))
    # Constants of the graph are hit by chance: one large case more.
    wanted += [(sizes, "hints") for sizes in others[-2:]]
    wanted += [(near, profile) for profile in UNFAIR if floats]
    plan = [replace(make_case(*one, seed), core=i < core) for i, one in enumerate(wanted)]
    none = {**exported, batch: 0}
    if empty and batch in exported and batch_sizes is None and shapes.is_served(none, limits):
        # An empty batch comes last, and does not gate unless it was asked for: onnxruntime dies of it in some operators.
        plan.append(replace(make_case(none, "normal", seed), fair=False))
    return list({case.name: case for case in [*plan, *reversed(plan)]}.values())  # the first of a name, in its place


def _measure_volume(sizes: Mapping[str, int]) -> float:
    return float(np.prod(list(sizes.values())))


def make_inputs(case: Case, domains: Sequence[Domain]) -> Inputs:
    """The inputs of a generated case: the same for the same name."""
    return {domain.name: _make(case, domain) for domain in domains}


def _make(case: Case, domain: Domain) -> Array:
    shape = domain.sized(case.sizes)
    if math.prod(shape) > LARGEST:
        raise MemoryError(f"an input of shape {list(shape)}")
    if case.profile == "example":
        return resize_example(domain, shape)
    # Not hash(), which may differ from process to process.
    generator = np.random.default_rng(zlib.crc32(f"{case.name}\0{domain.name}".encode()))
    return fill(domain, case.profile, shape, generator, case.sizes)


def resize_example(domain: Domain, shape: tuple[int, ...]) -> Array:
    """The example, repeated or cut along each dimension."""
    array = domain.example
    for axis, size in enumerate(shape):
        if array.shape[axis] and array.shape[axis] != size:
            array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
    return np.ascontiguousarray(array).reshape(shape) if array.shape == shape else np.zeros(shape, array.dtype)
