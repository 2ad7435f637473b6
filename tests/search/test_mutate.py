"""Changed inputs stay inputs."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use
from onnxproof.request.specs import Range
from onnxproof.search.mutate import MOVES, bound, mix, mutate, repeat

DIMS = {0: "batch"}
DOMAINS = [
    infer_domain("x", np.zeros((4, 6), np.float32), DIMS, Range(-2, 3), Use()),
    infer_domain("free", np.zeros((4, 6), np.float32), DIMS, None, Use()),
    infer_domain("ids", np.zeros((4, 2), np.int64), DIMS, None, Use(table=9)),
    infer_domain("mask", np.ones((4, 2), bool), DIMS, None, Use()),
]


@pytest.mark.parametrize("seed", range(8))
def test_no_change_leaves_the_ranges(seed):
    g = np.random.default_rng(seed)
    inputs = mix(DOMAINS, {"batch": 5}, "batch", g)
    for _ in range(10):
        inputs = mutate(inputs, DOMAINS, g)
    assert [(array.shape, array.dtype) for array in inputs.values()] == [((5, *d.shape[1:]), d.dtype) for d in DOMAINS]
    assert inputs["x"].min() >= -2
    assert inputs["x"].max() <= 3
    assert np.abs(inputs["free"]).max() <= 1e3
    assert set(inputs["ids"].ravel()) <= set(range(9))


@pytest.mark.parametrize("move", MOVES)
def test_every_move_changes_something_and_keeps_the_shape(move):
    array = np.random.default_rng(0).standard_normal((7, 9))
    changed = [move(array, (0.25,), np.random.default_rng(seed)) for seed in range(5)]
    assert all(one.shape == array.shape for one in changed)
    assert any(not np.array_equal(one, array) for one in changed)


def test_numbers_of_the_graph_are_tried():
    drawn = [MOVES[3](np.zeros((9, 9)), (0.123,), np.random.default_rng(seed)) for seed in range(9)]
    assert any((one == 0.123).any() for one in drawn)


def test_one_row_stands_in_every_row():
    inputs = {"x": np.arange(24, dtype=np.float32).reshape(4, 6)}
    assert (repeat(inputs, DOMAINS[:1], "batch", 2)["x"] == inputs["x"][2]).all()
    assert np.array_equal(repeat(inputs, DOMAINS[:1], None, 2)["x"], inputs["x"])


def test_what_is_no_number_is_zero_inside_the_range():
    assert bound(DOMAINS[0], np.array([np.nan, np.inf, -9.0])).tolist() == [0, 3, -2]
