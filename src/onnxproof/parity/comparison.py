"""Numbers about one output of one case: never an opinion.

`compare` sets two arrays side by side. `measure_noise` puts their distance in relation to the float64 truth, and
`explain` in relation to what rounding may do to this model (samples of the truth with legal rounding errors injected).
Arrays of different shape or dtype are never broadcast or cast: they have no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from onnxproof.proof.comparison import Comparison, Element, Exactness, Kind, Noise, Pattern
from onnxproof.tensors.arrays import Array, Floats, is_narrow_float

# Relative tolerances at which the envelope is exact whatever tolerance the run was made with.
SLOPES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SHOWN = 3
BLOCK = 2048
# Share of the injected errors that form the pooled noise: flips at discontinuities stay out of it.
TRIM = 0.99


@np.errstate(all="ignore")  # overflow and NaN are values in this module, not accidents
def compare(output: str, baseline: Array, candidate: Array, *, atol: float = 1e-4, rtol: float = 1e-3) -> Comparison:
    """Set two arrays side by side."""
    form: dict[str, Any] = {
        "output": output,
        "kind": classify_dtype(baseline),
        "baseline_dtype": str(baseline.dtype),
        "candidate_dtype": str(candidate.dtype),
        "baseline_shape": baseline.shape,
        "candidate_shape": candidate.shape,
        "size": int(baseline.size),
    }
    if baseline.shape != candidate.shape or baseline.dtype != candidate.dtype:
        return Comparison(**form)
    if form["kind"] == "discrete":
        return Comparison(**form, **_measure_discrete(baseline, candidate))
    return Comparison(**form, **_measure_floats(baseline, candidate, atol, rtol))


def classify_dtype(array: Array) -> Kind:
    """Whether values are compared by distance (floats, complex) or by equality."""
    return "float" if array.dtype.kind in "fc" or is_narrow_float(array.dtype) else "discrete"


def find_roundoff(dtype: np.dtype[Any]) -> float:
    """Half the distance from 1 to the next number of a float dtype (of its parts where it is complex)."""
    return float(ml_dtypes.finfo(dtype).eps) / 2


def to_float64(array: Array) -> Floats:
    """Widen to float64; a complex array becomes its real and imaginary parts in a last axis."""
    parts = np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array
    return parts.astype(np.float64)


def _measure_floats(baseline: Array, candidate: Array, atol: float, rtol: float) -> dict[str, Any]:
    b, c = to_float64(baseline), to_float64(candidate)
    pattern, both = _find_pattern(b, c)
    # Equal infinities must not be subtracted: inf − inf is NaN, and NaN would be the largest difference.
    difference = np.abs(c - b) if both is None else np.abs(np.subtract(c, b, out=np.zeros_like(b), where=both))
    magnitude = np.abs(b) if both is None else np.where(both, np.abs(b), 0.0)
    # A NaN on one side has no distance and is worse than any: it is shown first.
    ranked = difference if not pattern.differing else np.where(classify(b) == classify(c), difference, np.inf)
    numbers: dict[str, Any] = {
        "pattern": pattern,
        "compared": b.size if both is None else int(both.sum()),
        "worst": _pick_worst(ranked, baseline, candidate),
    }
    if not numbers["compared"]:
        return numbers
    relative = np.divide(difference, magnitude, out=np.zeros_like(difference), where=magnitude > 0)
    return {
        **numbers,
        "max_abs": float(difference.max()),
        "mean_abs": float(difference.sum()) / numbers["compared"],
        "max_rel": float(relative.max()),
        "mean_rel": float(relative.sum()) / numbers["compared"],
        "max_ulp": _measure_ulp(difference, magnitude, baseline.dtype),
        "cosine": _measure_cosine(b, c) if both is None else _measure_cosine(b[both], c[both]),
        "scale": float(magnitude.max()),
        "outside": int(np.count_nonzero(difference > atol + rtol * magnitude)) + pattern.differing,
        "envelope": _trace_envelope(magnitude, difference, rtol),
    }


def classify(values: Floats) -> NDArray[np.int8]:
    """0 finite, 1 NaN, 2 +inf, 3 −inf."""
    classes = np.zeros(values.shape, np.int8)
    if not np.isfinite(values).all():
        for kind, found in enumerate((np.isnan(values), np.isposinf(values), np.isneginf(values)), 1):
            classes[found] = kind
    return classes


def _find_pattern(b: Floats, c: Floats) -> tuple[Pattern, NDArray[np.bool_] | None]:
    """Where NaN and infinities are, and which pairs are finite (None: all of them, the usual case)."""
    if np.isfinite(b).all() and np.isfinite(c).all():
        return Pattern(), None
    kinds_b, kinds_c = classify(b), classify(c)
    pattern = Pattern(
        baseline=int((kinds_b != 0).sum()),
        candidate=int((kinds_c != 0).sum()),
        differing=int((kinds_b != kinds_c).sum()),
    )
    return pattern, (kinds_b == 0) & (kinds_c == 0)


def _measure_ulp(difference: Floats, magnitude: Floats, dtype: np.dtype[Any]) -> float:
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if is_narrow_float(real):
        return float((difference / (2 * find_roundoff(real) * magnitude + np.finfo(np.float32).tiny)).max())
    return float((difference / np.spacing(magnitude.astype(real)).astype(np.float64)).max())


def _measure_cosine(b: Floats, c: Floats) -> float | None:
    norms = measure_rms(b) * measure_rms(c)
    if not norms or not np.isfinite(norms):
        return None
    # Each side is scaled first: products of large values would overflow.
    return _sum_products(b.ravel() / measure_rms(b), c.ravel() / measure_rms(c)) / b.size


def _trace_envelope(magnitude: Floats, difference: Floats, rtol: float) -> tuple[tuple[float, float], ...]:
    m, d = magnitude.ravel(), difference.ravel()
    # Per block of elements: the smallest magnitude and the largest difference, which bound what the block can reach.
    starts = np.arange(0, d.size, BLOCK)
    rough = np.minimum.reduceat(m, starts), np.maximum.reduceat(d, starts)
    places = {_find_largest(m, d, slope, rough) for slope in {*SLOPES, rtol}}
    return tuple(sorted((float(m[i]), float(d[i])) for i in places))


def _find_largest(m: Floats, d: Floats, slope: float, rough: tuple[Floats, Floats]) -> int:
    """Where d − slope·m is largest; only blocks that can beat what was found are looked at."""
    bounds = rough[1] - slope * rough[0]
    best, place = -np.inf, 0
    for block in np.argsort(-bounds, kind="stable"):
        if bounds[block] <= best:
            break
        start = int(block) * BLOCK
        values = d[start : start + BLOCK] - slope * m[start : start + BLOCK]
        top = int(np.argmax(values))
        if values[top] > best:
            best, place = float(values[top]), start + top
    return place


def _pick_worst(ranked: Floats, baseline: Array, candidate: Array) -> tuple[Element, ...]:
    # For complex arrays the ranking has a last axis of parts; it counts for the element as a whole.
    if ranked.ndim > baseline.ndim:
        ranked = ranked.max(axis=-1)
    flat = ranked.ravel()
    if not flat.size:
        return ()
    count = min(SHOWN, flat.size)
    places = np.argpartition(flat, -count)[-count:]
    places = places[np.argsort(-flat[places], kind="stable")]
    return tuple(_read_element(int(i), baseline, candidate) for i in places if flat[i] > 0)


def _read_element(flat: int, baseline: Array, candidate: Array) -> Element:
    index = np.unravel_index(flat, baseline.shape) if baseline.ndim else ()
    return Element(tuple(int(i) for i in index), to_plain(baseline[index]), to_plain(candidate[index]))


def to_plain(value: Any) -> Any:
    """A numpy scalar as something JSON can hold (NaN and infinities by name)."""
    value = np.asarray(value).item()
    if isinstance(value, int):  # a bool is one too
        return value
    if isinstance(value, (str, bytes, complex)):
        return str(value)
    number = float(value)
    return number if np.isfinite(number) else str(number)


def _measure_discrete(baseline: Array, candidate: Array) -> dict[str, Any]:
    differs = np.asarray(baseline != candidate)
    distance = _measure_distance(baseline, candidate)
    numbers: dict[str, Any] = {
        "compared": int(baseline.size),
        "mismatched": int(differs.sum()),
        "worst": _pick_worst(np.where(differs, np.maximum(distance, 1.0), 0.0), baseline, candidate),
    }
    if baseline.dtype.kind in "iub" and baseline.size:
        numbers["max_abs"] = float(distance.max())
        numbers["mean_abs"] = float(distance.mean())
    return numbers


def _measure_distance(baseline: Array, candidate: Array) -> Floats:
    """|candidate − baseline| of integers without wrap-around: 1 where values have no distance."""
    if baseline.dtype.kind not in "iu":
        return np.asarray(baseline != candidate).astype(np.float64)
    # Two's complement: the difference modulo 2^64 of the larger minus the smaller is the true distance.
    high, low = np.maximum(baseline, candidate), np.minimum(baseline, candidate)
    wide = np.int64 if baseline.dtype.kind == "i" else np.uint64
    return (high.astype(wide).view(np.uint64) - low.astype(wide).view(np.uint64)).astype(np.float64)


def _sum_products(a: Floats, b: Floats) -> float:
    """Σ a·b without BLAS, whose threads spin for a while after a call and slow down the forwards that follow."""
    return float(np.einsum("i,i->", a, b))


def measure_rms(values: Floats) -> float:
    """Root mean square; 0 for nothing. Scaled where squares would overflow or vanish."""
    if not values.size:
        return 0.0
    flat = values.ravel()
    total = _sum_products(flat, flat)
    if 1e-200 < total < 1e300:
        return float(np.sqrt(total / flat.size))
    top = float(np.abs(flat).max())
    if top == 0 or not np.isfinite(top):
        return top
    return top * float(np.sqrt(np.mean(np.square(flat / top))))


def measure_scale(truth: Floats) -> Floats:
    """|value| plus the rms of its row: what an element's error is measured against."""
    values = truth if np.isfinite(truth).all() else np.where(np.isfinite(truth), truth, 0.0)
    # |value| alone would ask more of a zero than a sum of large terms that cancel can give.
    sizes = np.abs(values)
    if values.ndim and values.shape[-1] > 1:
        top = float(sizes.max(initial=0.0)) or 1.0
        scaled = values / top if not 1e-100 < top < 1e100 else values
        row = np.sqrt(np.einsum("...i,...i->...", scaled, scaled) / values.shape[-1])[..., None]
        sizes += row * top if scaled is not values else row
    else:
        sizes += measure_rms(values)
    return sizes + np.finfo(np.float64).tiny


@np.errstate(all="ignore")
def measure_noise(baseline: Array, candidate: Array, truth: Array, method: str, unit: float) -> Noise | None:
    """Distances from the truth, and their ratio; None where the truth has another shape or nothing is finite."""
    b, c, t = to_float64(baseline), to_float64(candidate), to_float64(truth)
    if t.shape != b.shape or c.shape != b.shape:
        return None
    scale = measure_scale(t)
    finite = np.isfinite(b + c + t)
    if not finite.any():
        return None
    if not finite.all():
        scale, b, c, t = scale[finite], b[finite], c[finite], t[finite]
    error_b, error_c = np.abs(b - t), np.abs(c - t)
    rms_b, rms_c = measure_rms(error_b), measure_rms(error_c)
    # A baseline that happens to be exact must not make any error of the candidate infinitely many times its own.
    floor = 2 * unit * measure_rms(t) + np.finfo(np.float64).tiny
    worst = max(
        float(error_c.max()) / max(float(error_b.max()), 4 * unit * float(np.abs(t).max()), floor),
        # Relative to its own row, too: a large row would hide a small one.
        float((error_c / scale).max()) / max(float((error_b / scale).max()), 4 * unit),
    )
    return Noise(method, rms_b, rms_c, rms_c / max(rms_b, floor), worst)


@np.errstate(all="ignore")
def measure_allowance(samples: Sequence[Floats], truth: Floats, scale: Floats, unit: float) -> Floats:
    """Per element: how far legal rounding may carry the value from the truth.

    Each sample is the truth with legal rounding errors injected. Four times the farthest sample at that element (this
    follows discontinuities), or eight times the pooled noise of all elements (this follows large tensors' tails).
    """
    # A sample that leaves the numbers shows that rounding may: nothing finite is held against the candidate there.
    # Without posinf, nan_to_num would make the largest float of it.
    errors = [np.nan_to_num(np.abs(s - truth), nan=np.inf, posinf=np.inf) for s in samples if s.shape == truth.shape]
    if not errors:
        return 4 * unit * scale
    farthest = np.max(errors, axis=0)
    pooled = np.concatenate([(e / scale).ravel() for e in errors])
    keep = np.sort(pooled[np.isfinite(pooled)])[: max(1, int(np.ceil(TRIM * pooled.size)))]
    return np.asarray(np.maximum(4 * farthest, (8 * measure_rms(keep) + 4 * unit) * scale))


@np.errstate(all="ignore")
def measure_unexplained(
    baseline: Array, candidate: Array, truth: Array, samples: Sequence[Array], unit: float
) -> float:
    """Worst element's distance from the truth over its allowance; the baseline counts as one more legal sample."""
    return float(measure_excess(baseline, candidate, truth, samples, unit).max(initial=0.0))


@np.errstate(all="ignore")
def measure_excess(baseline: Array, candidate: Array, truth: Array, samples: Sequence[Array], unit: float) -> Floats:
    """Every element's distance from the truth over its allowance; nothing where there is nothing finite to compare."""
    b, c, t = to_float64(baseline), to_float64(candidate), to_float64(truth)
    finite = np.isfinite(b) & np.isfinite(c)
    if t.shape != b.shape or not finite.any():
        return np.zeros(0)
    # Where the truth overflows and the baseline does not, the baseline is the best truth there is.
    known, scale = np.isfinite(t), measure_scale(t)
    t = np.where(known, t, b)
    scale = np.where(known, scale, np.abs(t) + np.finfo(np.float64).tiny)
    legal = [np.where(known, s, b) for s in map(to_float64, samples) if s.shape == t.shape]
    allowed = measure_allowance(legal, t, scale, unit)
    excess = np.where(finite, np.abs(c - t) / allowed, 0.0)
    return np.nan_to_num(excess, nan=0.0)


def is_credible(baseline: Array, truth: Array, samples: Sequence[Array], unit: float) -> bool:
    """Whether the baseline itself lies where legal rounding of the truth may lie: else it is no truth for it."""
    return measure_unexplained(baseline, baseline, truth, samples, unit) <= 4


def count_unexplained_pattern(baseline: Array, candidate: Array, samples: Sequence[Array]) -> int:
    """Of the NaN and infinities that differ, how many no sample shows."""
    kinds_b, kinds_c = classify(to_float64(baseline)), classify(to_float64(candidate))
    differs = kinds_b != kinds_c
    for sample in samples:
        kinds = classify(to_float64(sample))
        if kinds.shape == differs.shape:
            differs &= kinds == kinds_b
    return int(differs.sum())


def count_unexplained_mismatches(baseline: Array, candidate: Array, samples: Sequence[Array]) -> int:
    """Of the discrete values that differ, how many stay the same in every legal rounding."""
    differs = np.asarray(baseline != candidate)
    same_form = [sample for sample in samples if sample.shape == baseline.shape and sample.dtype == baseline.dtype]
    # Without any sample this is False: nothing is explained then.
    flips = np.any([sample != baseline for sample in same_form], axis=0)
    return int((differs & ~(flips & _is_reachable(baseline, candidate, same_form))).sum())


def _is_reachable(baseline: Array, candidate: Array, samples: Sequence[Array]) -> NDArray[np.bool_]:
    """Whether an integer lies about as far from the baseline as some sample does.

    Indices jump anywhere at a tie, so distances count only against the widest jump of the whole output.
    """
    if baseline.dtype.kind not in "iu" or not samples:
        return np.ones(baseline.shape, bool)
    widest = max(float(_measure_distance(baseline, sample).max(initial=0.0)) for sample in samples)
    return _measure_distance(baseline, candidate) <= 4 * widest


@np.errstate(all="ignore")
def measure_exactness(exact: Array, truth: Array, allowed: Floats) -> Exactness:
    """The graph in float64 against the truth, where `allowed` says what folded constants may cost per element."""
    e, t = to_float64(exact), to_float64(truth)
    finite = np.isfinite(e) & np.isfinite(t)
    if not finite.any():
        return Exactness(0.0, 0.0, 0.0)
    scale = measure_scale(t)
    error = np.where(finite, np.abs(e - t), 0.0)
    ratio = np.nan_to_num(error / allowed, nan=0.0, posinf=np.finfo(np.float64).max)
    place = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return Exactness(float((error / scale).max()), float((allowed / scale)[place]), float(ratio[place]))
