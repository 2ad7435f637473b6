"""The plan: what is tried, and that a name is enough to make it again."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.cases.domain import bind_lengths, infer_domain
from onnxproof.cases.plan import make_case, make_inputs, make_plan
from onnxproof.cases.roles import Use
from onnxproof.cases.values import PROFILES, UNFAIR
from onnxproof.request.specs import Range


def test_a_case_is_the_same_for_the_same_name():
    floats = infer_domain("x", np.zeros((2, 3), np.float32), {0: "batch"}, None, Use())
    case = make_case({"batch": 7}, "mixed")
    assert case.name == "batch=7/mixed/seed=0"
    first, second = make_inputs(case, [floats])["x"], make_inputs(case, [floats])["x"]
    assert first.shape == (7, 3)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, make_inputs(make_case({"batch": 7}, "mixed", 1), [floats])["x"])


def test_an_empty_batch_is_tried_last_and_does_not_gate():
    plan = make_plan({"batch": 2}, None, floats=True, empty=True)
    assert plan[-1].name == "batch=0/normal/seed=0"
    assert not plan[-1].fair
    assert all(case.sizes.get("batch") != 0 for case in plan[:-1])


def test_unfair_inputs_are_tried_and_marked():
    plan = make_plan({"batch": 2}, None, floats=True)
    unfair = {case.profile for case in plan if not case.fair}
    assert unfair == set(UNFAIR)
    assert len({case.name for case in plan}) == len(plan)


def test_a_length_stays_within_what_it_counts():
    floats = infer_domain("x", np.zeros((2, 6, 4), np.float32), {0: "batch", 1: "time"}, None, Use())
    lengths = infer_domain("lengths", np.array([6, 5]), {0: "batch"}, None, Use())
    measured = bind_lengths([floats, lengths])
    assert measured[1].measures == "time"
    for profile in PROFILES:
        made = make_inputs(make_case({"batch": 40, "time": 3}, profile), measured)
        assert made["lengths"].min() >= 0
        assert made["lengths"].max() <= 3
    tried = {int(v) for p in PROFILES for v in make_inputs(make_case({"batch": 40, "time": 9}, p), measured)["lengths"]}
    assert {0, 1, 8, 9} <= tried


def test_sizes_outside_the_limits_are_never_planned():
    plan = make_plan({"batch": 4}, None, floats=True, empty=True, limits={"batch": (2, 9)})
    assert {case.sizes["batch"] for case in plan} == {2, 3, 4, 7, 9}
    assert make_plan({"batch": 4}, (), floats=True) == []


def test_an_example_is_repeated_or_cut():
    domain = infer_domain("x", np.arange(6).reshape(2, 3), {0: "batch"}, None, Use())
    made = make_inputs(make_case({"batch": 3}, "example"), [domain])["x"]
    assert made.tolist() == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]
    assert make_inputs(make_case({"batch": 1}, "example"), [domain])["x"].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("profile", ["normal", "example"])
def test_a_size_that_no_memory_holds_is_out_of_memory(profile):
    """numpy says ValueError where there are more values than numbers for them."""
    domain = infer_domain("x", np.zeros((2, 3), np.float32), {0: "batch"}, None, Use())
    for size in (10**20, 1 << 62):
        with pytest.raises(MemoryError, match="shape"):
            make_inputs(make_case({"batch": size}, profile), [domain])


def test_a_range_beyond_all_integers_is_cut():
    domain = infer_domain("x", np.zeros((2, 3), np.int64), {0: "batch"}, Range(0, 1e30), Use())
    assert (make_inputs(make_case({"batch": 4}, "normal"), [domain])["x"] >= 0).all()
