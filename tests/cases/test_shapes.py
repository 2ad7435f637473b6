"""Sizes: what is tried for the dynamic dimensions."""

from __future__ import annotations

import itertools

from onnxproof.cases import shapes


def test_the_sweep_has_the_asked_sizes():
    sizes = {s["batch"] for s in shapes.sweep_sizes({"batch": 4}, None)}
    assert sizes == {1, 2, 3, 4, 7, 32, 128}
    assert {s["batch"] for s in shapes.sweep_sizes({"batch": 4}, (1, 5))} == {1, 5}
    two = shapes.sweep_sizes({"batch": 4, "seq": 16}, None)
    assert {s["seq"] for s in two} >= {1, 2, 3, 15, 16, 17, 33}


def test_the_exporters_bounds_join_the_sweep():
    assert {s["seq"] for s in shapes.sweep_sizes({"seq": 16}, None, bounds={"seq": (2, 40)})} >= {2, 40}


def test_a_covering_has_every_pair_and_is_smaller_than_the_product():
    choices = {"a": [1, 2, 3, 4], "b": [1, 5, 6], "c": [1, 7, 8], "d": [2, 9]}
    rows = shapes.cover_pairs(choices)
    for first, second in itertools.combinations(choices, 2):
        met = {(row[first], row[second]) for row in rows}
        assert met == set(itertools.product(choices[first], choices[second]))
    assert len(rows) < 4 * 3 * 3 * 2 / 3


def test_a_search_tries_landmarks_first_and_every_size_in_the_end():
    wide = shapes.sweep_widely({"batch": 4, "seq": 16}, (1, 2), "batch")
    assert {sizes["batch"] for sizes in wide} == {1, 2, 4}
    assert {sizes["seq"] for sizes in wide} >= set(range(1, shapes.EVERY + 1))
    assert 513 in [sizes["seq"] for sizes in wide[:60]]
    assert len({tuple(sizes.items()) for sizes in wide}) == len(wide)


def test_sizes_that_are_not_served_move_to_the_nearest_that_are():
    limits = {"batch": (2, 9)}
    assert shapes.clamp_sizes({"batch": 1, "seq": 50}, limits) == {"batch": 2, "seq": 50}
    assert shapes.clamp_sizes({"batch": 12}, limits) == {"batch": 9}
    assert shapes.is_served({"batch": 9, "seq": 50}, limits)
    assert not shapes.is_served({"batch": 10}, limits)
