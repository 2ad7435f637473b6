"""Float64 views of large arrays, slab by slab: what is measured of an array must not need several copies of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onnxproof.tensors.arrays import Array, Floats

# Elements that are looked at together: few enough to stay in a cache, many enough that numpy does the work.
SLAB = 1 << 18


def to_float64(array: Array) -> Floats:
    """Widen to float64, without a copy where it is; a complex array becomes its real and imaginary parts in a last axis."""
    parts = np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array
    return parts.astype(np.float64, copy=False)


def sum_products(a: Floats, b: Floats) -> float:
    """Σ a·b without BLAS, whose threads spin for a while after a call and slow down the forwards that follow."""
    return float(np.einsum("i,i->", a, b))


def measure_rms(values: Floats) -> float:
    """Root mean square; 0 for nothing. Scaled where squares would overflow or vanish."""
    if not values.size:
        return 0.0
    flat = values.ravel()
    total = sum_products(flat, flat)
    if 1e-200 < total < 1e300:
        return float(np.sqrt(total / flat.size))
    top = float(np.abs(flat).max())
    if top == 0 or not np.isfinite(top):
        return top
    return top * float(np.sqrt(np.mean(np.square(flat / top))))


def measure_scale(truth: Floats) -> Floats:
    """|value| plus the rms of its row: what an element's error is measured against."""
    values = _keep_finite(truth)
    # |value| alone would ask more of a zero than a sum of large terms that cancel can give.
    sizes = np.abs(values)
    if values.ndim and values.shape[-1] > 1:
        top = float(sizes.max(initial=0.0)) or 1.0
        scaled = values / top if not 1e-100 < top < 1e100 else values
        row = np.sqrt(np.einsum("...i,...i->...", scaled, scaled) / values.shape[-1])[..., None]
        sizes += row * top if scaled is not values else row
    else:
        sizes += measure_rms(values)
    return np.asarray(sizes + np.finfo(np.float64).tiny)


def pool_rms(parts: Floats, sizes: Floats) -> float:
    """The root mean square of a whole by those of its parts."""
    top = float(parts.max(initial=0.0))
    if not top or not np.isfinite(top):
        return top
    return top * float(np.sqrt((sizes * np.square(parts / top)).sum() / sizes.sum()))


def cut_slabs(truth: Array, *others: Array) -> Iterator[tuple[Floats, ...]]:
    """Arrays of one shape, piece by piece: the scale of the truth's elements, the truth and the others, all in float64."""
    if truth.size <= SLAB:
        wide = to_float64(truth)
        yield measure_scale(wide), wide, *map(to_float64, others)
        return
    flat = [array.reshape(-1) for array in (truth, *others)]
    # The parts of a complex number are a row by themselves, and so is all of an array whose last dimension is 1.
    width = 1 if truth.dtype.kind == "c" else truth.shape[-1] if truth.shape[-1] > 1 else truth.size
    if width > SLAB:
        yield from _cut_rows(flat, width)
        return
    step = SLAB // width * width
    for start in range(0, truth.size, step):
        first, *more = (to_float64(array[start : start + step]) for array in flat)
        rows = first if first.ndim > 1 else first.reshape(-1, width)
        yield measure_scale(rows).reshape(first.shape), first, *more


def _cut_rows(flat: list[Array], width: int) -> Iterator[tuple[Floats, ...]]:
    """The same where a row is longer than a slab."""
    for begin in range(0, flat[0].size, width):
        places = [slice(at, min(at + SLAB, begin + width)) for at in range(begin, begin + width, SLAB)]
        sizes = np.array([place.stop - place.start for place in places], np.float64)
        row = pool_rms(np.array([measure_rms(_keep_finite(to_float64(flat[0][place]))) for place in places]), sizes)
        for place in places:
            first, *more = (to_float64(array[place]) for array in flat)
            yield np.abs(_keep_finite(first)) + row + np.finfo(np.float64).tiny, first, *more


def _keep_finite(values: Floats) -> Floats:
    return values if np.isfinite(values).all() else np.where(np.isfinite(values), values, 0.0)
