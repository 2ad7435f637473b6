"""Numbers about one output of one case: never an opinion.

`compare` sets two arrays side by side. `measure_noise` puts their distance in relation to the float64 truth, and
`explain` in relation to what rounding may do to this model (samples of the truth with legal rounding errors injected).
Arrays of different shape or dtype are never broadcast or cast: they have no numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from onnxproof.parity.slabs import SLAB, cut_slabs, measure_rms, measure_scale, pool_rms, sum_products, to_float64
from onnxproof.proof.comparison import Comparison, Element, Exactness, Kind, Noise, Pattern
from onnxproof.tensors.arrays import Array, Floats, is_narrow_float

# Relative tolerances at which the envelope is exact whatever tolerance the run was made with.
SLOPES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SHOWN = 3
# Share of the injected errors that form the pooled noise: flips at discontinuities stay out of it.
TRIM = 0.99
# Errors over the scale of what stands around them from which on nothing stands there: they say nothing about other elements.
BARE = 1e3
# Errors over the scale from which on no digit of a value is right, and the share of samples in which that makes it one that is tossed about.
DIGITLESS, TOSSED = 0.1, 0.25
# Share of the elements of a baseline that may be far from the truth without making it none.
ODD = 0.005


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


def find_flushed(dtype: np.dtype[Any]) -> float:
    """Distances that mean nothing: kernels may take denormal numbers for zero (of halves, which none flushes, a few steps of their grid)."""
    info = ml_dtypes.finfo(dtype)
    return 4 * float(info.smallest_subnormal if dtype == np.float16 else info.tiny)


def _measure_floats(baseline: Array, candidate: Array, atol: float, rtol: float) -> dict[str, Any]:
    parts = [_measure_part(*pair, atol, rtol) for pair in _cut(baseline, candidate)]
    compared = sum(part.compared for part in parts)
    numbers: dict[str, Any] = {
        "pattern": Pattern(*(sum(counts) for counts in zip(*(part.pattern for part in parts), strict=True))),
        "compared": compared,
        "worst": _choose_worst([part.worst for part in parts], baseline, candidate),
    }
    if not compared:
        return numbers
    parts = [part for part in parts if part.compared]
    tops = (max(values) for values in zip(*(part.tops for part in parts), strict=True))
    sums = [sum(values) for values in zip(*(part.sums for part in parts), strict=True)]
    return {
        **numbers,
        **dict(zip(("max_abs", "max_rel", "max_ulp", "scale"), tops, strict=True)),
        "mean_abs": sums[0] / compared,
        "mean_rel": sums[1] / compared,
        "cosine": _pool_cosine(parts),
        "outside": int(sums[2]) + numbers["pattern"].differing,
        "envelope": _choose_points([point for part in parts for point in part.envelope], rtol),
    }


@dataclass(frozen=True)
class _Part:
    """What a slab of two arrays says."""

    pattern: tuple[int, int, int]
    compared: int
    worst: tuple[tuple[float, int], ...]
    tops: tuple[float, ...] = ()
    """The largest difference, absolute, relative and in ulp, and the largest value."""
    sums: tuple[float, ...] = ()
    """Of the differences, absolute and relative, and how many are outside."""
    rms: tuple[float, float] = (0.0, 0.0)
    cosine: float | None = None
    envelope: tuple[tuple[float, float], ...] = ()


def _cut(baseline: Array, candidate: Array) -> Iterator[tuple[int, Array, Array]]:
    """Flat slabs, each with its place."""
    b, c = baseline.reshape(-1), candidate.reshape(-1)
    for start in range(0, max(1, b.size), SLAB):
        yield start, b[start : start + SLAB], c[start : start + SLAB]


def _measure_part(start: int, baseline: Array, candidate: Array, atol: float, rtol: float) -> _Part:
    b, c = to_float64(baseline), to_float64(candidate)
    pattern, both = _find_pattern(b, c)
    # Equal infinities must not be subtracted: inf − inf is NaN, and NaN would be the largest difference.
    difference = np.abs(c - b) if both is None else np.abs(np.subtract(c, b, out=np.zeros_like(b), where=both))
    magnitude = np.abs(b) if both is None else np.where(both, np.abs(b), 0.0)
    # A NaN on one side has no distance and is worse than any: it is shown first.
    ranked = difference if not pattern[2] else np.where(classify(b) == classify(c), difference, np.inf)
    compared, worst = b.size if both is None else int(both.sum()), _pick_worst(ranked, start)
    if not compared:
        return _Part(pattern, compared, worst)
    relative = np.divide(difference, magnitude, out=np.zeros_like(difference), where=magnitude > 0)
    b, c = (b, c) if both is None else (b[both], c[both])
    rms = measure_rms(b), measure_rms(c)
    ulp = _measure_ulp(difference, magnitude, baseline.dtype)
    tops = float(difference.max()), float(relative.max()), ulp, float(magnitude.max())
    outside = np.count_nonzero(difference > atol + rtol * magnitude)
    sums = float(difference.sum()), float(relative.sum()), float(outside)
    envelope = _trace_envelope(magnitude.ravel(), difference.ravel(), rtol)
    return _Part(pattern, compared, worst, tops, sums, rms, _measure_cosine(b, c, rms), envelope)


def classify(values: Floats) -> NDArray[np.int8]:
    """0 finite, 1 NaN, 2 +inf, 3 −inf."""
    classes = np.zeros(values.shape, np.int8)
    if not np.isfinite(values).all():
        for kind, found in enumerate((np.isnan(values), np.isposinf(values), np.isneginf(values)), 1):
            classes[found] = kind
    return classes


def _find_pattern(b: Floats, c: Floats) -> tuple[tuple[int, int, int], NDArray[np.bool_] | None]:
    """How many NaN and infinities are on either side and how many differ, and which pairs are finite (None: all of them, the usual case)."""
    if np.isfinite(b).all() and np.isfinite(c).all():
        return (0, 0, 0), None
    kinds_b, kinds_c = classify(b), classify(c)
    counts = [int(where.sum()) for where in (kinds_b != 0, kinds_c != 0, kinds_b != kinds_c)]
    return (counts[0], counts[1], counts[2]), (kinds_b == 0) & (kinds_c == 0)


def _measure_ulp(difference: Floats, magnitude: Floats, dtype: np.dtype[Any]) -> float:
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if is_narrow_float(real):
        return float((difference / (2 * find_roundoff(real) * magnitude + np.finfo(np.float32).tiny)).max())
    return float((difference / np.spacing(magnitude.astype(real)).astype(np.float64)).max())


def _measure_cosine(b: Floats, c: Floats, rms: tuple[float, float]) -> float | None:
    norms = rms[0] * rms[1]
    if not norms or not np.isfinite(norms):
        return None
    # Each side is scaled first: products of large values would overflow.
    return sum_products(b.ravel() / rms[0], c.ravel() / rms[1]) / b.size


def _pool_cosine(parts: Sequence[_Part]) -> float | None:
    sizes = np.array([part.compared for part in parts], np.float64)
    b, c = (np.array([part.rms[side] for part in parts]) for side in (0, 1))
    whole_b, whole_c = pool_rms(b, sizes), pool_rms(c, sizes)
    if not whole_b * whole_c or not np.isfinite(whole_b * whole_c):
        return None
    cosines = np.array([part.cosine or 0.0 for part in parts])
    return float((cosines * (b / whole_b) * (c / whole_c) * (sizes / sizes.sum())).sum())


def _choose_points(points: Sequence[tuple[float, float]], rtol: float) -> tuple[tuple[float, float], ...]:
    """Of the points of all slabs those that decide for the whole."""
    return tuple(sorted({max(points, key=lambda at: at[1] - slope * at[0]) for slope in {*SLOPES, rtol}}))


def _trace_envelope(magnitude: Floats, difference: Floats, rtol: float) -> tuple[tuple[float, float], ...]:
    """Where difference − slope·magnitude is largest, for every slope."""
    places = {int(np.argmax(difference - slope * magnitude)) for slope in {*SLOPES, rtol}}
    return tuple((float(magnitude[i]), float(difference[i])) for i in places)


def _pick_worst(ranked: Floats, start: int) -> tuple[tuple[float, int], ...]:
    """The largest of a slab and their places in the whole."""
    # For complex arrays the ranking has a last axis of parts; it counts for the element as a whole.
    flat = ranked.max(axis=-1) if ranked.ndim > 1 else ranked
    count = min(SHOWN, flat.size)
    places = np.argpartition(flat, -count)[-count:] if count else ()
    return tuple((float(flat[i]), start + int(i)) for i in places if flat[i] > 0)


def _choose_worst(
    parts: Sequence[tuple[tuple[float, int], ...]], baseline: Array, candidate: Array
) -> tuple[Element, ...]:
    ranked = sorted(itertools.chain.from_iterable(parts), key=lambda one: (-one[0], one[1]))
    return tuple(_read_element(place, baseline, candidate) for _, place in ranked[:SHOWN])


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
    worst, mismatched, largest, total = [], 0, 0.0, 0.0
    for start, b, c in _cut(baseline, candidate):
        differs, distance = np.asarray(b != c), _measure_distance(b, c)
        mismatched += int(differs.sum())
        largest, total = max(largest, float(distance.max(initial=0.0))), total + float(distance.sum())
        worst.append(_pick_worst(np.where(differs, np.maximum(distance, 1.0), 0.0), start))
    numbers: dict[str, Any] = {
        "compared": int(baseline.size),
        "mismatched": mismatched,
        "worst": _choose_worst(worst, baseline, candidate),
    }
    if baseline.dtype.kind in "iub" and baseline.size:
        numbers |= {"max_abs": largest, "mean_abs": total / baseline.size}
    return numbers


def _measure_distance(baseline: Array, candidate: Array) -> Floats:
    """|candidate − baseline| of integers without wrap-around: 1 where values have no distance."""
    if baseline.dtype.kind not in "iu":
        return np.asarray(baseline != candidate).astype(np.float64)
    # Two's complement: the difference modulo 2^64 of the larger minus the smaller is the true distance.
    high, low = np.maximum(baseline, candidate), np.minimum(baseline, candidate)
    wide = np.int64 if baseline.dtype.kind == "i" else np.uint64
    return (high.astype(wide).view(np.uint64) - low.astype(wide).view(np.uint64)).astype(np.float64)


@np.errstate(all="ignore")
def measure_noise(baseline: Array, candidate: Array, truth: Array, method: str, unit: float) -> Noise | None:
    """Distances from the truth, and their ratio; None where the truth has another shape or nothing is finite."""
    if len({(array.shape, array.dtype.kind == "c") for array in (baseline, candidate, truth)}) > 1:
        return None
    found = [_measure_errors(*slab) for slab in cut_slabs(truth, baseline, candidate)]
    if not (parts := [part for part in found if part is not None]):
        return None
    sizes, b, c, t, *tops = np.array(parts).T
    rms_b, rms_c, rms_t = (pool_rms(rms, sizes) for rms in (b, c, t))
    top_b, top_c, top_t, row_b, row_c = (float(top.max()) for top in tops)
    # A baseline that happens to be exact must not make any error of the candidate infinitely many times its own.
    floor = 2 * unit * rms_t + np.finfo(np.float64).tiny
    # Relative to its own row, too: a large row would hide a small one.
    worst = max(top_c / max(top_b, 4 * unit * top_t, floor), row_c / max(row_b, 4 * unit))
    return Noise(method, rms_b, rms_c, rms_c / max(rms_b, floor), worst)


def _measure_errors(scale: Floats, truth: Floats, baseline: Floats, candidate: Floats) -> tuple[float, ...] | None:
    """How many elements a slab has that are finite, the rms of both errors and of the truth, and the largest: of these three, and of
    the errors relative to the scale; None where none is."""
    finite = np.isfinite(baseline + candidate + truth)
    if not finite.any():
        return None
    if not finite.all():
        scale, truth, baseline, candidate = scale[finite], truth[finite], baseline[finite], candidate[finite]
    errors = np.abs(baseline - truth), np.abs(candidate - truth)
    tops = (*errors, np.abs(truth), *(error / scale for error in errors))
    return (truth.size, *map(measure_rms, (*errors, truth)), *(float(top.max()) for top in tops))


@np.errstate(all="ignore")
def measure_allowance(samples: Sequence[Floats], truth: Floats, scale: Floats, unit: float) -> Floats:
    """Per element: how far legal rounding may carry the value from the truth.

    Each sample is the truth with legal rounding errors injected. Four times the farthest sample at that element (this
    follows discontinuities), or eight times the pooled noise of all elements (this follows large tensors' tails).
    """
    errors = _measure_distances(samples, truth)
    if not errors:
        return 4 * unit * scale
    farthest = np.max(errors, axis=0)
    tossed = _find_alike(errors, truth)
    farthest = np.where(tossed, np.max(farthest, where=tossed, initial=0.0), farthest)
    # What a sample makes nothing of may be nothing there, and says nothing of others.
    pooled = np.concatenate([(e / scale)[(e != np.abs(truth)) | (truth == 0)] for e in errors])
    keep = np.sort(pooled[pooled < BARE])[: max(1, int(np.ceil(TRIM * pooled.size)))]
    return np.asarray(np.maximum(4 * farthest, (8 * measure_rms(keep) + 4 * unit) * scale))


@np.errstate(all="ignore")
def _measure_distances(samples: Sequence[Floats], truth: Floats) -> list[Floats]:
    # A sample that leaves the numbers shows that rounding may: nothing finite is held against the candidate there.
    # Without posinf, nan_to_num would make the largest float of it.
    return [np.nan_to_num(np.abs(s - truth), nan=np.inf, posinf=np.inf) for s in samples if s.shape == truth.shape]


def find_digitless(samples: Sequence[Floats], truth: Floats) -> NDArray[np.bool_]:
    """Elements of which these samples leave no digit."""
    return _find_tossed(_measure_distances(samples, truth), truth)


def _find_tossed(errors: Sequence[Floats], truth: Floats, least: float = 0.0) -> NDArray[np.bool_]:
    """Elements of which rounding leaves no digit, as numbers of some least size."""
    limit = DIGITLESS * np.maximum(np.abs(truth), least)
    return np.asarray(sum((e > limit).astype(np.int32) for e in errors) >= max(2, TOSSED * len(errors)))


def _find_alike(errors: Sequence[Floats], truth: Floats) -> NDArray[np.bool_]:
    """Elements that are nothing but rounding (quotients of it, one of many equal ones): what one of them may be, any of them may.

    Few samples do not show how far such a one goes. A zero with its error beside numbers is not among them.
    """
    sizes = np.abs(truth[np.isfinite(truth) & (truth != 0)])
    return _find_tossed(errors, truth, float(np.median(sizes)) if sizes.size else 0.0)


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
    # A sample that stays a number there tells what rounding may do; one that does not, nothing.
    legal = [np.where(known | np.isfinite(s), s, b) for s in map(to_float64, samples) if s.shape == t.shape]
    allowed = np.maximum(measure_allowance(legal, t, scale, unit), find_flushed(baseline.dtype))
    excess = np.where(finite, np.abs(c - t) / allowed, 0.0)
    return np.nan_to_num(excess, nan=0.0)


def is_credible(baseline: Array, truth: Array, samples: Sequence[Array], unit: float) -> bool:
    """Whether the baseline itself lies where legal rounding of the truth may lie: else it is no truth for it.

    But for the odd element among many: which of several equal ones was chosen, the samples may not have met.
    """
    excess = measure_excess(baseline, baseline, truth, samples, unit)
    return int((excess > 4).sum()) <= ODD * excess.size


def count_unexplained_pattern(baseline: Array, candidate: Array, samples: Sequence[Array]) -> int:
    """Of the NaN and infinities that differ, how many no sample shows."""
    kinds_b, kinds_c = classify(to_float64(baseline)), classify(to_float64(candidate))
    differs, seen = kinds_b != kinds_c, np.zeros(kinds_b.shape, bool)
    wide = [to_float64(sample) for sample in samples if to_float64(sample).shape == differs.shape]
    for sample in wide:
        seen |= classify(sample) != kinds_b
    if differs.any() and wide:
        *legal, truth = wide
        tossed = _find_alike(_measure_distances(legal, truth), truth)
        seen |= tossed & bool((seen & tossed).any())
    return int((differs & ~seen).sum())


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
def measure_exactness(exact: Array, truth: Array, allowed: Floats | float) -> Exactness:
    """The graph in float64 against the truth, where `allowed` says what folded constants may cost per element: in itself, or as a
    number, relative to the scale."""
    worst, error, given = Exactness(0.0, 0.0, 0.0), 0.0, [allowed] if isinstance(allowed, np.ndarray) else []
    for scale, t, e, *limits in cut_slabs(truth, exact, *given):
        finite = np.isfinite(e) & np.isfinite(t)
        if not finite.any():
            continue
        relative = np.where(finite, np.abs(e - t), 0.0) / scale
        allowance = limits[0] / scale if limits else np.full_like(scale, allowed)
        ratio = np.nan_to_num(relative / allowance, nan=0.0, posinf=np.finfo(np.float64).max)
        place, error = np.unravel_index(int(np.argmax(ratio)), ratio.shape), max(error, float(relative.max()))
        worst = max(worst, Exactness(0.0, float(allowance[place]), float(ratio[place])), key=lambda one: one.ratio)
    return replace(worst, error=error)
