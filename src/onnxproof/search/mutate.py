"""Small changes to inputs that stay inputs: inside their ranges, ids remain ids, masks remain masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxproof.cases.domain import Domain, read_sizes
from onnxproof.cases.plan import Inputs
from onnxproof.cases.values import FAIR_LIMIT, PROFILES, fill
from onnxproof.request.specs import Range
from onnxproof.tensors.arrays import Array

Generator = np.random.Generator
FAIR = Range(-FAIR_LIMIT, FAIR_LIMIT)
SPECIAL = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 10.0, -10.0, 100.0, -100.0, 1e3, -1e3, 1e-6)


def bound(domain: Domain, values: Array) -> Array:
    """Floats inside the declared range, or the fair one."""
    valid = domain.valid or FAIR
    return np.asarray(np.clip(np.nan_to_num(values, nan=0.0), valid.low, valid.high).astype(domain.dtype))


def mutate(inputs: Inputs, domains: Sequence[Domain], g: Generator) -> Inputs:
    """Every input changed a little, most rows differently."""
    sizes = read_sizes(domains, inputs)
    changed = dict(inputs)
    for domain in domains:
        if g.random() < 0.8 or len(domains) == 1:
            changed[domain.name] = _mutate(inputs[domain.name], domain, sizes, g)
    return changed


def _mutate(array: Array, domain: Domain, sizes: dict[str, int], g: Generator) -> Array:
    if not array.size:
        return array
    if domain.is_float and array.dtype.kind == "f":
        move = MOVES[int(g.integers(len(MOVES)))]
        with np.errstate(over="ignore", invalid="ignore"):
            return bound(domain, move(array.astype(np.float64), domain.hints, g))
    other = fill(domain, PROFILES[int(g.integers(len(PROFILES)))], array.shape, g, sizes)
    return np.where(g.random(array.shape) < g.choice([0.05, 0.3, 1.0]), other, array)


def _shape_rows(array: Array) -> tuple[int, ...]:
    return (array.shape[0], *[1] * (array.ndim - 1)) if array.ndim else ()


def _perturb(array: Array, g: Generator) -> Array:
    where = g.random(array.shape) < g.choice([0.05, 0.3, 1.0])
    size = np.abs(array).mean() * g.choice([1e-3, 0.1, 1.0]) + 1e-6
    return np.asarray(array + where * g.standard_normal(array.shape) * size)


def _insert_special(array: Array, hints: Sequence[float], g: Generator) -> Array:
    where = g.random(array.shape) < g.choice([0.02, 0.2, 0.6])
    return np.where(where, g.choice([*SPECIAL, *hints], array.shape), array)


def _tie_values(array: Array, g: Generator) -> Array:
    """Some values of a row repeat its others."""
    if not array.ndim:
        return array
    from_ = g.integers(0, array.shape[-1], array.shape[-1])
    return np.where(g.random(array.shape[-1]) < 0.5, array[..., from_], array)


# What is done to floats; `hints` are numbers that the graph holds.
MOVES: tuple[Callable[[Array, Sequence[float], Generator], Array], ...] = (
    lambda a, hints, g: a * 2.0 ** g.uniform(-3, 3, _shape_rows(a)),
    lambda a, hints, g: a + g.standard_normal(_shape_rows(a)) * (np.abs(a).mean() + 1e-3),
    lambda a, hints, g: _perturb(a, g),
    _insert_special,
    lambda a, hints, g: _tie_values(a, g),
    lambda a, hints, g: a * g.choice([1.0, -1.0], a.shape),
)


def repeat(inputs: Inputs, domains: Sequence[Domain], batch: str | None, row: int) -> Inputs:
    """One row of the batch in every row."""
    copied = dict(inputs)
    for domain in domains:
        for axis, name in domain.dims.items():
            array = copied[domain.name]
            if name == batch and row < array.shape[axis]:
                copied[domain.name] = np.take(array, np.full(array.shape[axis], row), axis=axis)
    return copied


def mix(domains: Sequence[Domain], sizes: dict[str, int], batch: str | None, g: Generator) -> Inputs:
    """Inputs whose rows come from different profiles."""
    made: Inputs = {}
    together = [PROFILES[int(i)] for i in g.integers(0, len(PROFILES), 4)]
    pick: Array | None = None
    for domain in domains:
        shape = domain.sized(sizes)
        profiles = together if g.random() < 0.5 else [PROFILES[int(i)] for i in g.integers(0, len(PROFILES), 4)]
        drawn = [fill(domain, profile, shape, g, sizes) for profile in profiles]
        if batch is None or domain.dims.get(0) != batch or not shape:
            made[domain.name] = drawn[0]
            continue
        if pick is None or len(pick) != shape[0]:
            pick = g.integers(0, len(drawn), shape[0])
        made[domain.name] = np.stack([drawn[int(which)][i] for i, which in enumerate(pick)]) if shape[0] else drawn[0]
    return made
