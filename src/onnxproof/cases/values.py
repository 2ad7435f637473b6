"""Value profiles: what to fill an input with. A profile means something for every role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.domain import WIDE_INTEGERS, Domain, Role
from onnxproof.specs import Range

Floats = NDArray[np.float64]
Generator = np.random.Generator
Shape = tuple[int, ...]

FAIR_LIMIT = 1e3
"""Finite floats up to this size are fair inputs for any model that declares no range."""

FLOATS: dict[str, Callable[[Generator, Shape], Floats]] = {
    "normal": lambda g, s: g.standard_normal(s),
    "uniform": lambda g, s: g.random(s),
    "zeros": lambda g, s: np.zeros(s),
    "ones": lambda g, s: np.ones(s),
    "tiny": lambda g, s: g.standard_normal(s) * 1e-6,
    "large": lambda g, s: np.clip(g.standard_normal(s) * 300, -FAIR_LIMIT, FAIR_LIMIT),
    "negative": lambda g, s: -np.abs(g.standard_normal(s)),
    "mixed": lambda g, s: np.clip(g.standard_normal(s) * 10 ** g.uniform(-4, 2.5, s), -FAIR_LIMIT, FAIR_LIMIT),
    "halves": lambda g, s: g.integers(-6, 7, s) / 2.0,
    "constant": lambda g, s: np.broadcast_to(g.standard_normal((*s[:-1], 1)), s).copy() if s else g.standard_normal(s),
    "hints": lambda g, s: g.standard_normal(s) * 10,
    "sparse": lambda g, s: g.standard_normal(s) * (g.random(s) < 0.2) * _some_rows(g, s),
    "huge": lambda g, s: g.standard_normal(s) * 1e30,
    "nonfinite": lambda g, s: _nonfinite(g, s),
}
UNFAIR = ("huge", "nonfinite")
PROFILES = tuple(name for name in FLOATS if name not in UNFAIR)

INTEGERS: dict[str, Callable[[Generator, Shape, Range], Floats]] = {
    "zeros": lambda g, s, r: np.full(s, min(max(0.0, r.low), r.high)),
    "ones": lambda g, s, r: np.full(s, min(max(1.0, r.low), r.high)),
    "tiny": lambda g, s, r: g.choice([r.low, r.high], s),
    "large": lambda g, s, r: np.full(s, r.high),
    "negative": lambda g, s, r: _integers(g, s, Range(r.low, min(r.high, max(r.low, -1)))),
    "halves": lambda g, s, r: g.choice(_near_ends(r), s),
    "constant": lambda g, s, r: np.full(s, r.low),
}
"""Ids and integers; profiles not named here are uniform over the valid range."""

MASKS: dict[str, Callable[[Generator, Shape], Floats]] = {
    "zeros": lambda g, s: np.zeros(s),
    "ones": lambda g, s: np.ones(s),
    "uniform": lambda g, s: np.ones(s),
    "tiny": lambda g, s: _single(g, s),
    "halves": lambda g, s: (g.random(s) < 0.5).astype(np.float64),
    "sparse": lambda g, s: (g.random(s) < 0.2).astype(np.float64) * _some_rows(g, s),
}
"""Masks; profiles not named here are ragged: a prefix of each row is on."""


def _some_rows(g: Generator, shape: Shape) -> Floats:
    """1 or 0 per row, so that some rows are empty."""
    return np.ones(shape) if len(shape) < 2 else (g.random((*shape[:-1], 1)) < 0.7).astype(np.float64)


def _nonfinite(g: Generator, shape: Shape) -> Floats:
    """In most rows one value at a random place is NaN, +inf or −inf; the others stay finite."""
    values = g.standard_normal(shape)
    if not values.size:
        return np.asarray(values)
    rows = values.reshape(-1, shape[-1]) if shape else values.reshape(1, 1)
    kinds = g.choice([np.nan, np.nan, np.inf, -np.inf, 0.0], len(rows))
    kinds[0] = np.nan
    places = g.integers(0, rows.shape[1], len(rows))
    hit = kinds != 0
    rows[np.arange(len(rows))[hit], places[hit]] = kinds[hit]
    return rows.reshape(shape)


def _integers(g: Generator, shape: Shape, valid: Range) -> Floats:
    return g.integers(int(valid.low), int(valid.high), shape, endpoint=True).astype(np.float64)


def _near_ends(valid: Range) -> list[float]:
    ends = {
        valid.low,
        valid.high,
        min(valid.low + 1, valid.high),
        max(valid.high - 1, valid.low),
        np.floor((valid.low + valid.high) / 2),
    }
    return sorted(ends)


def _single(g: Generator, shape: Shape) -> Floats:
    values = np.zeros(shape)
    if values.size and shape:
        rows = values.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), g.integers(0, shape[-1], len(rows))] = 1
    return values


def _ragged(g: Generator, shape: Shape) -> Floats:
    if not shape or not shape[-1]:
        return np.ones(shape)
    lengths = g.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return (np.arange(shape[-1]) < lengths).astype(np.float64)


def fill(domain: Domain, profile: str, shape: Shape, g: Generator) -> NDArray[Any]:
    """An array for this input in this profile, in its dtype and inside its valid range."""
    makers: dict[Role, Callable[[], Floats]] = {
        "float": lambda: _float(domain, profile, shape, g),
        "mask": lambda: MASKS.get(profile, _ragged)(g, shape),
        "id": lambda: _integer(domain, profile, shape, g),
        "integer": lambda: _integer(domain, profile, shape, g),
    }
    values = np.asarray(makers[domain.role]())
    if domain.valid is not None and profile not in UNFAIR:
        values = np.clip(values, domain.valid.low, domain.valid.high)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values.astype(domain.dtype)).reshape(shape)


def _integer(domain: Domain, profile: str, shape: Shape, g: Generator) -> Floats:
    valid = domain.valid or WIDE_INTEGERS
    maker = INTEGERS.get(profile)
    return _integers(g, shape, valid) if maker is None else np.asarray(maker(g, shape, valid), dtype=np.float64)


def _at_hints(domain: Domain, shape: Shape, g: Generator) -> Floats:
    """Values at the graph's constants and their opposites, right beside them, and where a scaling by them lands on an exact half."""
    hints = np.array(domain.hints)
    scales = hints[np.abs(hints) > 1e-6]
    scale = g.choice(scales if scales.size else np.ones(1), shape) ** g.choice([-1.0, 1.0], shape)
    halves = np.clip((g.integers(-8, 8, shape) + 0.5) * scale, -FAIR_LIMIT, FAIR_LIMIT)
    exact = g.choice(hints, shape) * g.choice([1.0, 1.0, -1.0], shape)
    beside = exact + g.uniform(-1e-3, 1e-3, shape)
    if domain.dtype.kind == "f":
        direction = np.where(g.random(shape) < 0.5, np.inf, -np.inf).astype(domain.dtype)
        nearest = np.nextafter(exact.astype(domain.dtype), direction).astype(np.float64)
        beside = np.where(g.random(shape) < 0.5, nearest, beside)
    which = g.random(shape)
    return np.asarray(np.where(which < 0.5, halves, np.where(which < 0.8, exact, beside)))


def _float(domain: Domain, profile: str, shape: Shape, g: Generator) -> Floats:
    values = _at_hints(domain, shape, g) if profile == "hints" and domain.hints else FLOATS[profile](g, shape)
    if domain.valid is None or profile in UNFAIR:
        return values
    low, high = domain.valid.low, domain.valid.high
    middle, half = (low + high) / 2, (high - low) / 2
    if profile in ("normal", "mixed", "sparse", "constant"):
        return middle + half * values / max(1.0, float(np.abs(values).max(initial=0.0)))
    if profile == "uniform":
        return low + values * (high - low)
    if profile == "large":
        return np.where(g.random(shape) < 0.5, low, high)
    return values
