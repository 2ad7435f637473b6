"""Cases: what is tried, and that a name is enough to make it again."""

from __future__ import annotations

import numpy as np
import pytest

import models
from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use, find_uses
from onnxproof.cases.values import PROFILES, choose_hints, fill
from onnxproof.graph.view import Graph
from onnxproof.request.specs import Range


def domain(example, declared=None, use=None, name="x", role=None):
    return infer_domain(name, np.asarray(example), {0: "batch"}, declared, use or Use(), role=role)


@pytest.mark.parametrize("profile", PROFILES)
def test_fair_floats_are_finite_and_moderate(profile):
    values = fill(domain(np.zeros((2, 3), np.float32)), profile, (50, 40), np.random.default_rng(0))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 1e3


def test_an_offset_is_far_larger_than_what_varies_and_both_are_exact():
    values = fill(domain(np.zeros((2, 3), np.float32)), "offset", (50, 40), np.random.default_rng(0))
    assert (np.abs(values.mean(-1)) > 100 * values.std(-1)).all()
    assert (values.std(-1) > 0.5).all()
    assert np.array_equal(values * 16, np.round(values.astype(np.float64) * 16))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_declared_range_is_never_left(profile):
    g = np.random.default_rng(0)
    floats = fill(domain(np.zeros((2, 3), np.float32), Range(2.0, 5.0)), profile, (50, 40), g)
    ids = fill(domain(np.zeros((2, 3), np.int64), Range(3, 9)), profile, (50, 40), g)
    assert floats.min() >= 2
    assert floats.max() <= 5
    assert ids.min() >= 3
    assert ids.max() <= 9


def test_both_ends_of_a_range_are_tried():
    ids = domain(np.zeros((2, 3), np.int64), None, Use(table=30))
    seen = {int(v) for p in PROFILES for v in fill(ids, p, (5, 9), np.random.default_rng(0)).ravel()}
    assert {0, 29} <= seen
    assert max(seen) == 29


def test_masks_are_on_off_and_ragged():
    mask = domain(np.ones((2, 6), np.int64), name="attention_mask")
    assert mask.role == "mask"
    g = np.random.default_rng(0)
    assert fill(mask, "zeros", (3, 6), g).sum() == 0
    assert fill(mask, "ones", (3, 6), g).all()
    ragged = fill(mask, "normal", (50, 6), g)
    assert 0 < ragged.mean() < 1
    assert ragged[:, 0].all()


def test_a_gather_tells_the_range_of_ids(exported):
    assert find_uses(Graph.read(exported("lookup")))["ids"].table == 30


def test_models_module_is_what_the_tests_think():
    assert set(models.CORRECT) <= set(dir(models))


def test_an_additive_mask_holds_zero_and_its_lowest_value_only():
    example = np.zeros((2, 5), np.float32)
    example[0, 2:] = -np.inf
    mask = domain(example, use=Use(added_before_softmax=True))
    for profile in PROFILES:
        values = fill(mask, profile, (3, 5), np.random.default_rng(0))
        assert set(np.unique(values)) <= {0.0, -np.inf}
    assert np.isneginf(fill(mask, "zeros", (3, 5), np.random.default_rng(0))).all()


def test_a_mask_that_hides_nothing_in_the_example_is_tried_with_both_usual_values():
    mask = infer_domain("mask", np.zeros((2, 5), np.float32), {}, None, Use(added_before_softmax=True))
    seen = {profile: fill(mask, profile, (40, 5), np.random.default_rng(0)) for profile in PROFILES}
    assert {float(low) for values in seen.values() for low in np.unique(values)} == {0.0, -1e9, -np.inf}
    infinite = [values for values in seen.values() if np.isneginf(values).any()]
    assert all((values[:, 0] == 0).all() for values in infinite)


def test_integers_reach_powers_of_two_and_the_largest():
    integers = domain(np.zeros((2, 3), np.int64))
    declared = domain(np.zeros((2, 3), np.int64), Range(0, 5))
    for profile, most in {"exponents": 2**47 + 1, "denormal": 2**63 - 1}.items():
        seen = {int(v) for v in fill(integers, profile, (200, 9), np.random.default_rng(0)).ravel()}
        assert {2**31, 2**31 - 1, -(2**31)} <= seen
        assert most // 4 < max(seen) <= most
        assert min(seen) > -(2**63)
        assert fill(declared, profile, (200, 9), np.random.default_rng(0)).max() <= 5


def test_a_mask_over_past_and_new_leaves_the_new_ones_on():
    mask = infer_domain("mask", np.ones((2, 8), np.int64), {0: "batch", 1: "past+seq"}, None, Use())
    sizes = {"batch": 3, "past": 4, "seq": 2}
    for profile in PROFILES:
        made = fill(mask, profile, mask.sized(sizes), np.random.default_rng(0), sizes)
        assert made.shape == (3, 6)
        assert made[:, 4:].all(), profile
    assert not fill(mask, "zeros", (3, 6), np.random.default_rng(0), sizes)[:, :4].any()


def test_a_single_number_is_mostly_the_examples():
    made = [int(fill(domain(16000), "normal", (), np.random.default_rng(seed))) for seed in range(100)]
    assert 35 < made.count(16000) < 65
    declared = [int(fill(domain(3, Range(1, 9)), "normal", (), np.random.default_rng(seed))) for seed in range(100)]
    assert declared.count(3) < 35


def test_integers_at_the_graphs_constants_go_beyond_the_example():
    """A limit of 800 is met where the example has no more than 700."""
    hints = choose_hints((0.5, 800.0, 36524.0), np.array([10, 700]))
    assert hints == (800.0, 36524.0)
    domain = infer_domain("step", np.array([10, 700]), {}, None, Use(), hints)
    drawn = fill(domain, "hints", (400,), np.random.default_rng(0))
    assert {799, 800, 801, 36523, 36524, 36525} <= set(drawn.tolist())
    assert (
        fill(
            infer_domain("step", np.array([1]), {}, Range(0, 9), Use(), hints), "hints", (40,), np.random.default_rng(0)
        ).max()
        <= 9
    )


def test_what_says_a_size_stays_small():
    domain = infer_domain("n", np.array([3]), {}, None, Use(sizes=True), (800.0,))
    assert abs(fill(domain, "hints", (40,), np.random.default_rng(0))).max() <= 100


def test_floats_reach_constants_as_far_as_their_example():
    assert choose_hints((0.5, 1e4, 1e6), np.array([20000.0, np.inf])) == (0.5, 1e4)
    assert choose_hints((0.5, 900.0, 1e4), np.array([1.0])) == (0.5, 900.0)
