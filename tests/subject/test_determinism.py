"""Who draws random numbers, and what a rare draw gives."""

from __future__ import annotations

import random

import numpy as np
import torch

from onnxproof.subject.determinism import HIGH, LOW, read_generators, watch_draws


def test_a_draw_moves_the_generators():
    before = read_generators()
    assert read_generators() == before
    for draw in (random.random, np.random.rand, lambda: torch.rand(1)):
        draw()
        assert read_generators() != before
        before = read_generators()


def test_every_draw_is_seen_with_its_line():
    with watch_draws() as watch:
        torch.rand(2)
        random.choice([1, 2])
        np.random.normal()
        torch.zeros(2) + 1
    assert [name for name, _ in watch.seen] == ["aten.rand.default", "random.choice", "numpy.random.normal"]
    assert all(where.file == __file__ for _, where in watch.seen)


def test_the_rarest_numbers_are_given_in_place_of_drawn_ones():
    plain = random.random
    with watch_draws(LOW):
        assert torch.rand(3).eq(0).all()
        assert random.random() == 0.0
        assert random.uniform(2.0, 4.0) == 2.0
    with watch_draws(HIGH):
        assert torch.rand_like(torch.zeros(2)).eq(HIGH).all()
        assert (np.random.uniform(low=-1.0, high=1.0, size=3) > 0.999).all()
        assert torch.randn(100).lt(0).any()
    assert random.random is plain
