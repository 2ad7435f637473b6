"""The comparison core: pure numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onnxproof.parity.comparison import (
    compare,
    count_unexplained_mismatches,
    count_unexplained_pattern,
    find_roundoff,
    is_credible,
    measure_allowance,
    measure_exactness,
    measure_noise,
    measure_rms,
    measure_scale,
    measure_unexplained,
)
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.comparison import Comparison

FLOATS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(-1e6, 1e6, width=32))


@given(FLOATS)
def test_an_array_equals_itself(array):
    result = compare("x", array, array.copy())
    assert result.max_abs == 0
    assert result.worst == ()
    assert result.excess(0, 0) <= 0


@given(FLOATS, st.floats(0, 1e-2), st.floats(0, 1e3))
def test_the_envelope_decides_like_allclose_at_its_slopes(array, noise, atol):
    candidate = (array * (1 + np.float32(noise)) + np.float32(noise)).astype(np.float32)
    result = compare("x", array, candidate, rtol=1e-3)
    difference = np.abs(candidate.astype(np.float64) - array.astype(np.float64))
    for rtol in (0.0, 1e-3, 1e-2):
        expected = bool((difference > atol + rtol * np.abs(array.astype(np.float64))).any())
        assert (result.excess(atol, rtol) > 0) == expected


def test_the_worst_elements_come_first_with_both_values():
    b = np.zeros((2, 3), np.float32)
    c = b.copy()
    c[1, 2], c[0, 1] = 3.0, -1.0
    worst = compare("x", b, c).worst
    assert [(w.index, w.candidate) for w in worst] == [((1, 2), 3.0), ((0, 1), -1.0)]


def test_nonfinite_differences_are_the_worst():
    b = np.array([1.0, 2.0, 3.0], np.float32)
    c = np.array([9.0, np.nan, 3.0], np.float32)
    assert compare("x", b, c).worst[0].candidate == "nan"


def test_ulp_distance():
    b = np.array([1.0], np.float32)
    c = np.nextafter(b, np.float32(2))
    assert compare("x", b, c).max_ulp == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, ml_dtypes.bfloat16])
def test_every_float_dtype_has_numbers(dtype):
    b = np.array([1.0, -2.0], dtype=dtype)
    c = np.array([1.0, -2.5], dtype=dtype)
    result = compare("x", b, c)
    assert result.kind == "float"
    assert result.max_abs == pytest.approx(0.5)
    assert result.worst[0].index == (1,)


def test_zero_dimensional_and_empty_arrays():
    assert compare("x", np.array(1.0, np.float32), np.array(2.0, np.float32)).max_abs == 1.0
    assert compare("x", np.array(1), np.array(3)).max_abs == 2
    assert compare("x", np.zeros(0, np.float32), np.zeros(0, np.float32)).compared == 0


def test_elements_outside_the_tolerance_are_counted():
    b, c = np.zeros(4, np.float32), np.array([0, 1, 1e-5, np.nan], np.float32)
    assert compare("x", b, c).outside == 2
    assert compare("x", b, c, atol=1e-6).outside == 3


def test_cosine_and_scale():
    result = compare("x", np.array([3.0, 4.0], np.float32), np.array([6.0, 8.0], np.float32))
    assert result.cosine == pytest.approx(1.0)
    assert result.scale == 4.0


def test_noise_ratio_is_relative_to_pytorchs_own_error():
    truth = np.linspace(1, 2, 100)
    baseline = (truth + 1e-6).astype(np.float32)
    near, far = (truth - 1e-6).astype(np.float32), (truth + 1e-4).astype(np.float32)
    unit = find_roundoff(np.dtype(np.float32))
    assert measure_noise(baseline, near, truth, "float64", unit).ratio == pytest.approx(1.0, rel=0.2)
    assert measure_noise(baseline, far, truth, "float64", unit).ratio > 50


def test_where_pytorch_is_exact_the_floor_is_a_few_ulp():
    truth = np.array([1.0, 2.0, 3.0])
    exact = truth.astype(np.float32)
    noise = measure_noise(exact, np.nextafter(exact, np.float32(9)), truth, "float64", find_roundoff(exact.dtype))
    assert noise.ratio < 2
    assert noise.worst_ratio < 2


def test_one_element_wrong_among_many_shows_in_the_worst_ratio():
    truth = np.ones((10, 1000))
    baseline = (truth + 1e-7).astype(np.float32)
    candidate = baseline.copy()
    candidate[3, 5] += 1e-4
    noise = measure_noise(baseline, candidate, truth, "float64", find_roundoff(baseline.dtype))
    assert noise.worst_ratio > 100


def test_a_small_row_is_not_hidden_by_a_large_one():
    truth = np.stack([np.full(50, 1e6), np.full(50, 1e-3)])
    baseline = truth.astype(np.float32)
    candidate = baseline.copy()
    candidate[1, 7] *= 1.01
    noise = measure_noise(baseline, candidate, truth, "float64", find_roundoff(baseline.dtype))
    assert noise.ratio < 1
    assert noise.worst_ratio > 1000


def test_samples_explain_what_they_reach():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(4, 50))
    samples = [truth + rng.normal(size=truth.shape) * 1e-3 for _ in range(8)]
    within, beyond = truth + 3e-3, truth + 3e-1
    unit = find_roundoff(np.dtype(np.float32))
    assert measure_unexplained(truth, within, truth, samples, unit) <= 1
    assert measure_unexplained(truth, beyond, truth, samples, unit) > 1


def test_a_flip_is_explained_only_where_a_sample_flips_too():
    baseline, candidate = np.array([1, 2, 3]), np.array([1, 5, 3])
    assert count_unexplained_mismatches(baseline, candidate, [np.array([1, 2, 4])]) == 1
    assert count_unexplained_mismatches(baseline, candidate, [np.array([1, 7, 3])]) == 0


def test_a_pattern_is_explained_only_where_a_sample_shows_it():
    baseline, candidate = np.array([1.0, 2.0]), np.array([1.0, np.nan])
    assert count_unexplained_pattern(baseline, candidate, [np.array([1.0, 2.0])]) == 1
    assert count_unexplained_pattern(baseline, candidate, [np.array([1.0, np.nan])]) == 0


def test_flips_do_not_widen_the_allowance_elsewhere():
    truth = np.zeros((1, 1000)) + 1.0
    sample = truth + 1e-7
    sample[0, 0] = 100.0
    allowed = measure_allowance([sample], truth, measure_scale(truth), 1e-8)
    assert allowed[0, 0] > 100
    assert allowed[0, 1] < 1e-5


def test_what_is_nothing_but_rounding_is_judged_together():
    """Of quotients of rounding errors no few samples show how far one goes; what has digits is held to them."""
    random = np.random.default_rng(0)
    truth = np.ones((2, 1000))
    samples = [truth + 1e-7 * random.standard_normal(truth.shape) for _ in range(8)]
    for sample in samples:
        sample[0, :5] = random.standard_cauchy(5)
    candidate = truth.copy()
    candidate[0, :5] = 2 * np.abs(samples).max()
    assert measure_unexplained(truth, candidate, truth, samples, 6e-8) <= 1
    candidate[1, 0] += 1e-3
    assert measure_unexplained(truth, candidate, truth, samples, 6e-8) > 1
    candidate[:] = truth
    candidate[0, 0] = np.nan
    assert count_unexplained_pattern(truth, candidate, [*samples, truth]) == 1
    samples[0][0, 1] = np.inf
    assert count_unexplained_pattern(truth, candidate, [*samples, truth]) == 0
    candidate[1, 0] = np.nan
    assert count_unexplained_pattern(truth, candidate, [*samples, truth]) == 1


def test_a_zero_with_its_error_is_not_tossed_about():
    truth = np.ones((2, 1000))
    truth[:, 1] = 0.0
    errors = np.zeros_like(truth)
    errors[0, 0], errors[:, 1] = 0.5, 1e-4
    allowed = measure_allowance([truth + sign * errors for sign in (1, -1, 2)], truth, measure_scale(truth), 1e-8)
    assert allowed[0, 0] > 1
    assert allowed[0, 1] < 1e-2


def test_exactness_is_relative_to_the_allowance():
    truth = np.array([1.0, 2.0])
    result = measure_exactness(truth + 1e-6, truth, np.full(2, 1e-8))
    assert result.ratio == pytest.approx(100)


def test_rms_of_large_values_does_not_overflow():
    assert measure_rms(np.array([1e300, 1e300])) == pytest.approx(1e300)
    assert measure_rms(np.array([])) == 0


@given(FLOATS)
def test_a_comparison_survives_json(array):
    import json

    result = compare("x", array, array + np.float32(1))
    assert decode(json.loads(json.dumps(to_plain(result))), Comparison) == result


# Any pair of arrays of one form: NaN, infinities, denormals, signed zeros.
DTYPES = st.sampled_from([np.float16, np.float32, np.float64])


@st.composite
def pairs(draw, dtypes=DTYPES):
    """Two arrays of one form; the second is often near to the first."""
    dtype = np.dtype(draw(dtypes))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    first = draw(hnp.arrays(dtype, shape))
    if draw(st.booleans()):
        return first, draw(hnp.arrays(dtype, shape))
    near = np.where(draw(hnp.arrays(np.bool_, shape)), np.nextafter(first, dtype.type(np.inf)), first)
    return first, near.astype(dtype)


def rational(array):
    return [Fraction(float(value)) for value in array.ravel()]


@given(pairs())
def test_distances_are_those_of_exact_arithmetic(pair):
    b, c = pair
    finite = np.isfinite(b) & np.isfinite(c)
    result = compare("x", b, c)
    assert result.compared == finite.sum()
    exact = [abs(x - y) for x, y in zip(rational(c[finite]), rational(b[finite]), strict=True)]
    if not exact:
        assert result.max_abs is None
        return
    # Less than half a step beyond the largest number rounds to it.
    if max(exact) >= Fraction(np.finfo(np.float64).max) + 2**970:
        assert result.max_abs == np.inf  # beyond any number that could tell it
        return
    # One rounding of the exact distance.
    assert result.max_abs == float(max(exact))
    shares = [d / abs(x) for d, x in zip(exact, rational(b[finite]), strict=True) if x]
    if shares and max(shares) < Fraction(np.finfo(np.float64).max):
        assert result.max_rel == pytest.approx(float(max(shares)), rel=1e-15)


@given(pairs(), st.floats(0, 1e3), st.floats(0, 1))
def test_outside_counts_as_exact_arithmetic_does(pair, atol, rtol):
    b, c = pair
    finite = np.isfinite(b) & np.isfinite(c)
    margin = [
        abs(x - y) - (Fraction(atol) + Fraction(rtol) * abs(y))
        for x, y in zip(rational(c[finite]), rational(b[finite]), strict=True)
    ]
    size = [abs(x) + abs(y) + Fraction(atol) for x, y in zip(rational(c[finite]), rational(b[finite]), strict=True)]
    # What rounding of the sum decides is left open.
    certain = sum(m > s * Fraction(2) ** -50 for m, s in zip(margin, size, strict=True))
    possible = sum(m > -s * Fraction(2) ** -50 for m, s in zip(margin, size, strict=True))
    result = compare("x", b, c, atol=atol, rtol=rtol)
    if finite.any():
        assert certain <= result.outside - result.pattern.differing <= possible


@given(pairs())
def test_the_sides_may_be_changed(pair):
    there, back = compare("x", *pair), compare("x", *pair[::-1])
    assert (there.max_abs, there.compared, there.cosine) == (back.max_abs, back.compared, back.cosine)
    swapped = replace(back.pattern, baseline=back.pattern.candidate, candidate=back.pattern.baseline)
    assert there.pattern == swapped
    assert [element.index for element in there.worst[:1]] == [element.index for element in back.worst[:1]]


@given(pairs(st.just(np.float32)), st.integers(-40, 40))
def test_powers_of_two_scale_what_has_a_scale_and_nothing_else(pair, power):
    # As float64, in which no float32 over- or underflows by this.
    b, c = (array.astype(np.float64) for array in pair)
    factor = 2.0**power
    before, after = compare("x", b, c), compare("x", b * factor, c * factor)
    assert after.pattern == before.pattern
    assert after.max_rel == before.max_rel
    assert [element.index for element in after.worst] == [element.index for element in before.worst]
    if before.max_abs is not None:
        assert after.max_abs == before.max_abs * factor


@given(pairs())
def test_a_nan_or_an_infinity_on_one_side_is_always_told(pair):
    b, c = pair

    def kinds(array):
        return np.where(np.isnan(array), "nan", np.where(np.isinf(array), np.where(array > 0, "+", "-"), "finite"))

    differing = int((kinds(b) != kinds(c)).sum())
    result = compare("x", b, c)
    assert result.pattern.differing == differing
    if differing:
        first = result.worst[0].index
        assert kinds(b)[first] != kinds(c)[first]


@given(
    hnp.arrays(st.sampled_from([np.float32, np.float64, np.int64, np.bool_, np.complex64]), (3,)),
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_, np.complex64]), st.sampled_from([(3,), (1, 3)])
    ),
)
def test_another_form_has_no_numbers(b, c):
    result = compare("x", b, c)
    same = b.shape == c.shape and b.dtype == c.dtype
    assert result.same_form == same
    if not same:
        assert (result.max_abs, result.compared, result.worst) == (None, 0, ())


@given(hnp.arrays(np.int64, (4,)), hnp.arrays(np.int64, (4,)))
def test_integers_have_their_true_distance(b, c):
    exact = [abs(int(x) - int(y)) for x, y in zip(c, b, strict=True)]
    result = compare("x", b, c)
    assert result.mismatched == sum(map(bool, exact))
    assert result.max_abs == float(max(exact))


@given(pairs())
def test_every_comparison_survives_its_proof(pair):
    result = compare("x", *pair)
    assert to_plain(decode(to_plain(result), Comparison)) == to_plain(result)


@pytest.mark.parametrize(("dtype", "step"), [(np.float32, 1e-42), (np.float16, 6e-8)])
def test_what_kernels_flush_is_explained_beside_large_values(dtype, step):
    """A denormal number has few digits or is taken for zero, whatever stands beside it; the truth stays one."""
    truth = np.array([[step * 1.4, 0.0], [1e3, 2e3]])
    baseline, candidate = truth.astype(dtype), np.array([[0.0, 0.0], [1e3, 2e3]], dtype)
    assert is_credible(baseline, truth, [truth], find_roundoff(baseline.dtype))
    assert measure_unexplained(baseline, candidate, truth, [truth], find_roundoff(baseline.dtype)) <= 1
    candidate[1, 0] += 100
    assert measure_unexplained(baseline, candidate, truth, [truth], find_roundoff(baseline.dtype)) > 1


def test_one_odd_element_among_many_does_not_make_a_truth_none():
    truth = np.ones(1000)
    baseline = truth.astype(np.float32)
    baseline[3] = 7  # another one of several equal values was chosen
    assert is_credible(baseline, truth, [truth], 6e-8)
    assert not is_credible(baseline[:100], truth[:100], [truth[:100]], 6e-8)


def test_an_error_where_nothing_stands_excuses_none_elsewhere():
    """A row that nothing was added to is zero, up to rounding; relative to itself its error is infinite."""
    truth = np.array([[1.0, 2.0], [0.0, 0.0]])
    samples = [truth + 1e-7, truth - 1e-7]
    wrong = np.array([[1.5, 2.0], [0.0, 0.0]], np.float32)
    assert measure_unexplained(truth.astype(np.float32), wrong, truth, samples, 6e-8) > 1e5
    near = (truth + 2e-7).astype(np.float32)
    assert measure_unexplained(truth.astype(np.float32), near, truth, samples, 6e-8) <= 1


def test_where_the_truth_is_no_number_finite_samples_tell_what_rounding_does():
    """The angle of a vector to itself: not a number where float64 happens to round above one."""
    truth, baseline = np.array([np.nan, 1.0]), np.array([0.0, 1.0], np.float32)
    candidate = np.array([4.9e-4, 1.0], np.float32)
    samples = [np.array([np.nan, 1.0]), np.array([3.5e-4, 1.0])]
    assert measure_unexplained(baseline, candidate, truth, samples, 6e-8) <= 1
    assert measure_unexplained(baseline, candidate, truth, samples[:1], 6e-8) > 1
