"""Slabs: what is measured piece by piece is what is measured of the whole, and needs no copies of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from onnxproof.parity import comparison, slabs
from onnxproof.parity.comparison import compare, measure_exactness, measure_noise
from onnxproof.parity.slabs import cut_slabs, measure_rms, measure_scale, pool_rms, to_float64

SHAPES = [(60,), (6, 10), (60, 1), (2, 30), (3, 4, 5), (5, 12)]
DTYPES = [np.float32, np.complex64, np.int32, np.bool_]


@pytest.fixture
def small(monkeypatch):
    """Slabs of a few elements."""

    def cut(size):
        monkeypatch.setattr(slabs, "SLAB", size)
        monkeypatch.setattr(comparison, "SLAB", size)

    return cut


def make(shape, dtype, *, odd=False):
    generator = np.random.default_rng(0)
    b = (generator.normal(size=shape) * 9).astype(dtype)
    c = (b + generator.normal(size=shape) * generator.choice([0, 1e-3, 2], size=shape)).astype(dtype)
    if odd and b.dtype.kind in "fc":
        b.reshape(-1)[[3, 40]], c.reshape(-1)[[3, 41]] = np.nan, np.inf
    return b, c


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces_say_what_the_whole_says(shape, dtype, odd, small):
    b, c = make(shape, dtype, odd=odd)
    whole, noise = compare("x", b, c), None
    wide = to_float64(b) if dtype == np.float32 else None
    if wide is not None:
        noise, exact = measure_noise(b, c, b + 1e-6, "float64", 1e-7), measure_exactness(c, wide, 1e-3)
        each = measure_exactness(c, wide, 1e-3 * measure_scale(wide))
    small(7)
    pieces = compare("x", b, c)
    assert pieces.worst == whole.worst
    assert pieces.envelope == whole.envelope
    for name in ("compared", "mismatched", "outside", "pattern", "max_abs", "max_rel", "max_ulp", "scale"):
        assert getattr(pieces, name) == getattr(whole, name), name
    for name in ("mean_abs", "mean_rel", "cosine"):
        assert (getattr(pieces, name) or 0) == pytest.approx(getattr(whole, name) or 0, rel=1e-12), name
    if wide is not None:
        again = measure_noise(b, c, b + 1e-6, "float64", 1e-7)
        for name in ("baseline_rms", "candidate_rms", "ratio", "worst_ratio"):
            assert getattr(again, name) == pytest.approx(getattr(noise, name), rel=1e-12), name
        for allowed, known in ((1e-3, exact), (1e-3 * measure_scale(wide), each)):
            got = measure_exactness(c, wide, allowed)
            assert (got.error, got.ratio) == pytest.approx((known.error, known.ratio), rel=1e-12)


@pytest.mark.parametrize("shape", [*SHAPES, ()])
def test_slabs_have_the_scale_of_their_rows(shape, small):
    values = np.asarray(np.random.default_rng(1).normal(size=shape))
    whole = measure_scale(values).ravel()
    small(7)
    parts = list(cut_slabs(values, values + 1))
    assert np.concatenate([part[0].ravel() for part in parts]) == pytest.approx(whole, rel=1e-12)
    assert np.array_equal(np.concatenate([part[2].ravel() for part in parts]), values.ravel() + 1)


def test_the_rms_of_parts():
    values = np.arange(10.0)
    parts, sizes = np.array([measure_rms(values[:3]), measure_rms(values[3:])]), np.array([3.0, 7.0])
    assert pool_rms(parts, sizes) == pytest.approx(measure_rms(values), rel=1e-15)
    assert pool_rms(np.zeros(2), sizes) == 0
    assert pool_rms(np.array([1e300, 1e300]), sizes) == pytest.approx(1e300)


@pytest.mark.parametrize("shape", [(1 << 22,), (1 << 11, 1 << 11), (1 << 22, 1)])
def test_no_copy_of_a_large_output_is_made(shape):
    b = np.ones(shape, np.float32)
    c, t = b * np.float32(1.25), np.ones(shape)
    tracemalloc.start()
    try:
        compare("x", b, c)
        measure_noise(b, c, t, "float64", 1e-7)
        measure_exactness(t, t, 1e-9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The whole in float64 would be twice the array's size, and there were a dozen of them.
    assert peak < b.nbytes * 1.5
    assert peak < 100 * slabs.SLAB
