"""Value profiles: what to fill an input with. A profile means something for every role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxproof.cases.domain import FULLY_MASKED, WIDE_INTEGERS, Domain
from onnxproof.request.specs import Range
from onnxproof.tensors.arrays import Array, Floats

Generator = np.random.Generator
Shape = tuple[int, ...]

# Finite floats up to this size are fair inputs for any model that declares no range.
FAIR_LIMIT = 1e3

# Where exp, softplus, tanh, sigmoid and their squares under- or overflow or saturate in float32 and float64.
EXPONENTS = (5e-39, 16.6, 17.4, 20.0, 44.3, 87.3, 88.0, 88.7, 89.0, 103.9, 104.0, 709.0, 710.0, 745.0)

# Profile → the powers of two that integers of any size reach in it. Kernels compute in float64, whose 53 bits hold a sum of
# thirty numbers of 48 bits; what is larger is to integers what denormals are to floats.
POWERS = {"exponents": 48, "denormal": 63}

FLOATS: dict[str, Callable[[Generator, Shape], Floats]] = {
    "normal": lambda g, s: g.standard_normal(s),
    "uniform": lambda g, s: g.random(s),
    "zeros": lambda g, s: np.zeros(s),
    "ones": lambda g, s: np.ones(s),
    "tiny": lambda g, s: g.standard_normal(s) * 1e-6,
    "large": lambda g, s: np.clip(g.standard_normal(s) * 300, -FAIR_LIMIT, FAIR_LIMIT),
    "negative": lambda g, s: -np.abs(g.standard_normal(s)),
    "mixed": lambda g, s: np.clip(g.standard_normal(s) * 10 ** g.uniform(-4, 2.5, s), -FAIR_LIMIT, FAIR_LIMIT),
    # Exact halves, on which ways of rounding differ.
    "halves": lambda g, s: g.integers(-6, 7, s) / 2.0,
    "constant": lambda g, s: np.broadcast_to(g.standard_normal((*s[:-1], 1)), s).copy() if s else g.standard_normal(s),
    # Rows far from zero beside what they vary by, in exact steps: what is computed of squares or of large sums loses it.
    "offset": lambda g, s: (
        g.integers(500, 950, (*s[:-1], 1) if s else s) * g.choice([1.0, -1.0]) + g.integers(-32, 33, s) / 16
    ),
    "hints": lambda g, s: g.standard_normal(s) * 10,
    "sparse": lambda g, s: g.standard_normal(s) * (g.random(s) < 0.2) * _mask_rows(g, s),
    "ties": lambda g, s: g.choice(g.standard_normal(3), s),
    "sorted": lambda g, s: _draw_sorted(g, s),
    "onehot": lambda g, s: _draw_single(g, s) * g.choice([1.0, -1.0, 5.0, 100.0], s),
    "alternating": lambda g, s: _draw_alternating(g, s),
    "exponents": lambda g, s: g.choice(EXPONENTS, s) * g.choice([1.0, -1.0], s) * _mask_rows(g, s),
    "denormal": lambda g, s: g.standard_normal(s) * 1e-40,
    "huge": lambda g, s: g.standard_normal(s) * 1e30,
    # The second is the root of the first: where a square begins to overflow.
    "largest": lambda g, s: g.choice([3.4028234663852886e38, 1.8446743e19, 1.0], s) * g.choice([1.0, -1.0], s),
    "nonfinite": lambda g, s: _draw_nonfinite(g, s, (np.nan, np.nan, np.inf, -np.inf, 0.0)),
    "infinite": lambda g, s: _draw_nonfinite(g, s, (np.inf, -np.inf)),
}
UNFAIR = ("huge", "largest", "nonfinite", "infinite")
NONFINITE = ("nonfinite", "infinite")
PROFILES = tuple(name for name in FLOATS if name not in UNFAIR)

# Images; profiles not named here are as for any floats.
IMAGES: dict[str, Callable[[Generator, Shape], Floats]] = {
    "large": lambda g, s: g.integers(0, 256, s).astype(np.float64),
    "constant": lambda g, s: np.broadcast_to(g.random((*s[:2], 1, 1)), s).copy(),
    "sorted": lambda g, s: np.broadcast_to(np.linspace(0, 1, s[-1]), s).copy(),
    "halves": lambda g, s: g.integers(0, 2, s).astype(np.float64),
}

# Ids and integers; profiles not named here are uniform over the valid range.
INTEGERS: dict[str, Callable[[Generator, Shape, Range], Floats]] = {
    "zeros": lambda g, s, r: np.full(s, min(max(0.0, r.low), r.high)),
    "ones": lambda g, s, r: np.full(s, min(max(1.0, r.low), r.high)),
    "tiny": lambda g, s, r: g.choice([r.low, r.high], s),
    "large": lambda g, s, r: np.full(s, r.high),
    "negative": lambda g, s, r: _draw_integers(g, s, Range(r.low, min(r.high, max(r.low, -1)))),
    "halves": lambda g, s, r: g.choice(
        np.unique([r.low, r.high, min(r.low + 1, r.high), max(r.high - 1, r.low), np.floor((r.low + r.high) / 2)]), s
    ),
    "constant": lambda g, s, r: np.full(s, r.low),
    "ties": lambda g, s, r: np.broadcast_to(_draw_integers(g, (*s[:-1], 1) if s else s, r), s).copy(),
    "sorted": lambda g, s, r: r.low + np.arange(int(np.prod(s)), dtype=np.float64).reshape(s) % (r.high - r.low + 1),
    "alternating": lambda g, s, r: g.choice([v for v in (-1.0, 0.0, 1.0) if r.low <= v <= r.high] or [r.low], s),
    "exponents": lambda g, s, r: np.clip(
        2.0 ** g.integers(0, 31, s) * g.choice([1.0, -1.0], s) + g.integers(-1, 2, s), r.low, r.high
    ),
}

# The profile in which an additive mask of an unknown lowest value has minus infinity.
HIDDEN_BY_INFINITY = "mixed"

# Masks; profiles not named here are ragged: a prefix of each row is on.
MASKS: dict[str, Callable[[Generator, Shape], Floats]] = {
    "zeros": lambda g, s: np.zeros(s),
    "ones": lambda g, s: np.ones(s),
    "uniform": lambda g, s: np.ones(s),
    "tiny": lambda g, s: _draw_single(g, s),
    "onehot": lambda g, s: _draw_single(g, s),
    "halves": lambda g, s: (g.random(s) < 0.5).astype(np.float64),
    "sparse": lambda g, s: (g.random(s) < 0.2).astype(np.float64) * _mask_rows(g, s),
    "alternating": lambda g, s: 1 - _draw_ragged(g, s),
    "sorted": lambda g, s: 1 - _draw_single(g, s),
}


def _mask_rows(g: Generator, shape: Shape) -> Floats:
    """1 or 0 per row, so that some rows are empty."""
    return np.ones(shape) if len(shape) < 2 else (g.random((*shape[:-1], 1)) < 0.7).astype(np.float64)


def _draw_sorted(g: Generator, shape: Shape) -> Floats:
    """Ascending rows, each second one descending."""
    values = np.sort(g.standard_normal(shape), axis=-1) if shape else g.standard_normal(shape)
    if len(shape) > 1 and values.size:
        rows = values.reshape(-1, shape[-1])
        rows[1::2] = rows[1::2, ::-1].copy()
    return np.asarray(values)


def _draw_alternating(g: Generator, shape: Shape) -> Floats:
    """Signs that alternate along each row."""
    values = np.abs(g.standard_normal(shape))
    return np.asarray(values * (1 - 2 * (np.arange(shape[-1]) % 2)) if shape else values)


def _draw_nonfinite(g: Generator, shape: Shape, choice: tuple[float, ...]) -> Floats:
    """In most rows one value at a random place is one of these (0: none); the others stay finite."""
    values = g.standard_normal(shape)
    if not values.size:
        return np.asarray(values)
    rows = values.reshape(-1, shape[-1]) if shape else values.reshape(1, 1)
    kinds = g.choice(choice, len(rows))
    # Chance may leave a small batch without any.
    kinds[0] = choice[0]
    places = g.integers(0, rows.shape[1], len(rows))
    hit = kinds != 0
    rows[np.arange(len(rows))[hit], places[hit]] = kinds[hit]
    return rows.reshape(shape)


def _draw_integers(g: Generator, shape: Shape, valid: Range) -> Floats:
    return g.integers(int(valid.low), int(valid.high), shape, endpoint=True).astype(np.float64)


def _draw_single(g: Generator, shape: Shape) -> Floats:
    values = np.zeros(shape)
    if values.size and shape:
        rows = values.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), g.integers(0, shape[-1], len(rows))] = 1
    return values


def _draw_ragged(g: Generator, shape: Shape) -> Floats:
    if not shape or not shape[-1]:
        return np.ones(shape)
    return (np.arange(shape[-1]) < g.integers(1, shape[-1] + 1, (*shape[:-1], 1))).astype(np.float64)


def fill(domain: Domain, profile: str, shape: Shape, g: Generator, sizes: Mapping[str, int] | None = None) -> Array:
    """An array for this input in this profile, in its dtype and inside its valid range."""
    valid = domain.within(sizes or {})
    if domain.is_float:
        values = _fill_float(domain, profile, shape, g)
    elif "mask" in domain.role:
        values = MASKS.get(profile, _draw_ragged)(g, shape)
        # A token that may look at nothing, not even at itself, has no answer that anybody could use.
        if new := domain.newest(sizes or {}):
            values[..., -new:] = 1
        if domain.role == "additive-mask":  # 0 where it is on, the example's lowest value where it is off
            low = float(domain.example.min(initial=0.0))
            # An example that hides nothing does not tell how: both ways are usual. Prefixes hide no row whole, behind another mask neither.
            unknown = -np.inf if profile == HIDDEN_BY_INFINITY else FULLY_MASKED
            values = np.where(values > 0, 0.0, low if low < 0 else unknown)
    else:
        values = _fill_integer(domain, valid, profile, shape, g)
    free = _takes_extremes(domain, profile) or (_takes_hints(domain, profile) and not domain.declared)
    if valid is not None and (domain.declared or profile not in UNFAIR) and not free:
        values = np.clip(values, valid.low, valid.high)
    return _cast(values, domain.dtype).reshape(shape)


def _cast(values: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu" and values.dtype.kind == "f":
        # A float64 cannot hold the largest integers: what is beyond becomes the largest.
        info = np.iinfo(dtype)
        whole = np.clip(values, float(info.min), float(info.max))
        return np.where(whole >= float(info.max), info.max, np.minimum(whole, 2.0**62).astype(dtype)).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values.astype(dtype))


def _takes_extremes(domain: Domain, profile: str) -> bool:
    return profile in POWERS and domain.role == "integer" and domain.extremes and not domain.declared


def _takes_hints(domain: Domain, profile: str) -> bool:
    return profile == "hints" and domain.role == "integer" and domain.extremes and bool(domain.hints)


def _fill_integer(domain: Domain, valid: Range | None, profile: str, shape: Shape, g: Generator) -> Floats:
    if domain.is_number and g.random() < 0.5:  # what floats do is tried where the model is meant to be
        return domain.example.astype(np.float64)
    if _takes_extremes(domain, profile):
        info = np.iinfo(domain.dtype) if domain.dtype.kind in "iu" else np.iinfo(np.int64)
        return _draw_powers(g, shape, info, POWERS[profile])
    if _takes_hints(domain, profile):
        return _draw_whole(domain.hints, shape, g)
    valid = valid or WIDE_INTEGERS
    maker = INTEGERS.get(profile)
    return _draw_integers(g, shape, valid) if maker is None else np.asarray(maker(g, shape, valid), dtype=np.float64)


def _draw_powers(g: Generator, shape: Shape, info: np.iinfo[Any], most: int) -> Floats:
    """Powers of two and their neighbours up to the largest. The lowest is left out: divided by −1 it kills the process."""
    lowest = -float(info.max) if info.min < 0 else 0.0
    powers = 2.0 ** g.integers(0, min(info.bits - 1, most), shape) * g.choice([1.0, -1.0] if lowest else [1.0], shape)
    return np.asarray(np.clip(powers + g.integers(-1, 2, shape), lowest, float(info.max)))


def choose_hints(constants: Sequence[float], example: Array) -> tuple[float, ...]:
    """The graph's constants that an input may have: whole ones for integers, for floats those that are fair or no farther than its example."""
    if example.dtype.kind in "iu":
        return tuple(one for one in constants if one == round(one))
    sizes = np.abs(example[np.isfinite(example)]) if example.dtype.kind == "f" else np.zeros(0)
    most = max(FAIR_LIMIT, float(sizes.max(initial=0.0)))
    return tuple(one for one in constants if abs(one) <= most)


def _draw_whole(hints: Sequence[float], shape: Shape, g: Generator) -> Floats:
    """Small multiples of the graph's constants, and what lies beside them: where a division or a remainder begins anew."""
    multiples = g.choice(np.array(hints), shape) * g.choice([1.0, 1.0, 1.0, 2.0, 3.0, 4.0, -1.0], shape)
    return np.asarray(multiples + g.integers(-1, 2, shape))


def _draw_hints(domain: Domain, shape: Shape, g: Generator) -> Floats:
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


def _fill_float(domain: Domain, profile: str, shape: Shape, g: Generator) -> Floats:
    if profile == "like-data" and domain.sample is not None:
        return _draw_like(domain.sample, shape, g)
    makers = {**FLOATS, **IMAGES} if domain.role == "image" and len(shape) == 4 else FLOATS
    make = makers.get(profile, FLOATS["normal"])
    values = _draw_hints(domain, shape, g) if profile == "hints" and domain.hints else make(g, shape)
    if domain.valid is None or profile in UNFAIR:
        return values
    low, high = domain.valid.low, domain.valid.high
    middle, half = (low + high) / 2, (high - low) / 2
    if profile in ("normal", "mixed", "sparse", "constant", "ties", "sorted", "alternating"):
        return middle + half * values / max(1.0, float(np.abs(values).max(initial=0.0)))
    if profile == "uniform":
        return low + values * (high - low)
    return np.where(g.random(shape) < 0.5, low, high) if profile == "large" else values


def _draw_like(sample: Array, shape: Shape, g: Generator) -> Floats:
    """The user's data with every place drawn anew from what was seen at that place."""
    rows = g.integers(0, len(sample), shape)
    if sample.shape[1:] != shape[1:]:
        return np.asarray(g.choice(sample.reshape(-1), shape), dtype=np.float64)
    places = (rows, *np.indices(shape)[1:])
    return np.asarray(sample[places], dtype=np.float64)
