"""A failing input becomes one that a person can read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use
from onnxproof.request.specs import Range
from onnxproof.search.shrink import Shrinker, show_in_full


def floats(shape=(8, 6), declared=None):
    return infer_domain("x", np.zeros(shape, np.float32), {0: "batch", 1: "time"}, declared, Use())


def test_shrinking_leaves_one_short_number():
    start = {"x": np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32) * 20}
    small = Shrinker([floats()], lambda trial: bool((trial["x"] > 5.3).any())).shrink(start)
    assert small["x"].shape == (1, 1)
    assert 5.3 < small["x"][0, 0] <= 10
    assert len(show_in_full(small)) <= len("x = [[10]]")


def test_shrinking_keeps_what_it_needs():
    rng = np.random.default_rng(1)
    start = {"x": rng.standard_normal((8, 6)).astype(np.float32)}

    def two_equal_rows_in_need(trial):
        return trial["x"].shape[0] >= 2 and trial["x"].shape[1] >= 3 and bool((trial["x"][1] != 0).any())

    small = Shrinker([floats()], two_equal_rows_in_need).shrink(start)
    assert small["x"].shape == (2, 3)
    assert np.count_nonzero(small["x"]) == 1
    assert abs(small["x"]).max() == 1


def test_shrinking_stays_in_the_declared_range():
    start = {"x": np.full((4, 6), 7.7, np.float32)}
    tried = []
    small = Shrinker([floats(declared=Range(3, 9))], lambda t: tried.append(t["x"]) or t["x"].max() > 7).shrink(start)
    assert all(t.min() >= 3 and t.max() <= 9 for t in tried)
    assert small["x"].shape == (1, 1)


def test_shrinking_stays_in_the_declared_sizes():
    start = {"x": np.full((4, 6), 7.7, np.float32)}
    domain = replace(floats(), limits={"batch": (3, 8)})
    small = Shrinker([domain], lambda t: t["x"].max() > 7).shrink(start)
    assert small["x"].shape == (3, 1)


def test_shrinking_stops_with_its_budget():
    count = []
    Shrinker([floats()], lambda t: count.append(1) or False, 25).shrink({"x": np.ones((8, 6), "f4")})
    assert len(count) == 25


def test_inputs_that_do_not_fit_one_line_are_not_shown():
    assert show_in_full({"x": np.random.default_rng(0).standard_normal((100, 100))}) is None
    assert show_in_full({"x": np.zeros((100, 100))}) == "x = 0 in [100, 100]"
    sparse = np.zeros((2, 100))
    sparse[1, 7] = 2.5
    assert show_in_full({"x": sparse}) == "x = 0 in [2, 100] but 2.5 at [1, 7]"
    assert show_in_full({"ids": np.array([[3, 4]]), "x": np.float32([0.1])}) == "ids = [[3, 4]], x = [0.1]"


def test_what_is_as_long_as_two_lengths_together_follows_both():
    past, mask = (
        infer_domain(name, np.arange(size, dtype=np.float32), {0: dim}, None, Use())
        for name, size, dim in (("past", 4, "past"), ("mask", 6, "past+seq"))
    )
    new = infer_domain("new", np.zeros(2, np.float32), {0: "seq"}, None, Use())
    inputs = {"past": past.example, "mask": mask.example, "new": new.example}
    small = Shrinker(
        [past, mask, new], lambda i: 3.0 in i["past"] and len(i["mask"]) == sum(map(len, (i["past"], i["new"])))
    )
    made = small.shrink(inputs)
    assert [len(made[name]) for name in ("past", "new", "mask")] == [1, 1, 2]


PREDICATES = {
    "some value is large": lambda x: bool((np.abs(x) > 3).any()),
    "some value is no number": lambda x: bool(np.isnan(x).any()),
    "the sum is negative": lambda x: bool(np.nansum(x.astype(np.float64)) < 0),
    "two columns at least": lambda x: x.shape[1] >= 2,
    "a negative zero": lambda x: bool((np.signbit(x) & (x == 0)).any()),
    "always": lambda x: True,
}
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 5))


@settings(max_examples=150)
@given(hnp.arrays(np.float32, SHAPES), st.sampled_from(sorted(PREDICATES)), st.integers(1, 80))
def test_what_is_shrunk_still_fails_and_is_no_larger(start, name, most):
    tried = []

    def fails(inputs):
        tried.append(inputs["x"])
        return PREDICATES[name](inputs["x"])

    before = start.tobytes()
    shrinker = Shrinker([floats(start.shape)], fails, most)
    small = shrinker.shrink({"x": start})["x"]
    assert start.tobytes() == before
    assert len(tried) == shrinker.tried <= most
    assert all(x.dtype == np.float32 and x.ndim == 2 and x.size for x in tried)
    if PREDICATES[name](start):
        assert PREDICATES[name](small)
        assert small.size <= start.size
        assert small is start or any(small is one or np.array_equal(small, one, equal_nan=True) for one in tried)
    elif not any(map(PREDICATES[name], tried)):
        assert small.tobytes() == before


@settings(max_examples=60)
@given(hnp.arrays(np.float32, SHAPES, elements=st.floats(-9, 9, width=32)))
def test_what_always_fails_shrinks_to_one_zero(start):
    small = Shrinker([floats(start.shape)], lambda inputs: True).shrink({"x": start})["x"]
    assert small.shape == (1, 1)
    assert small.tobytes() == np.zeros(1, np.float32).tobytes()


@settings(max_examples=60)
@given(hnp.arrays(np.float32, SHAPES), st.sampled_from(sorted(PREDICATES)))
def test_shrinking_twice_is_shrinking_once_more_of_the_same(start, name):
    def shrink(x):
        return Shrinker([floats(start.shape)], lambda inputs: PREDICATES[name](inputs["x"])).shrink({"x": x})["x"]

    assert shrink(start.copy()).tobytes() == shrink(start).tobytes()
