"""Every size, and every id."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from onnxproof.search.sweeps import Sweeps, list_cuts, list_lengths
from search.test_hunt import FLOATS, IDS, supply


def random(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(list(numbers))


def test_every_id_of_a_table_is_laid_out():
    seen = [inputs["ids"] for inputs in Sweeps(supply(FLOATS, IDS)).ids(random)]
    assert {int(one) for array in seen for one in array.ravel()} == set(range(700))


def test_more_rows_take_fewer_inputs():
    few, many = (len(list(Sweeps(supply(FLOATS, IDS), rows).ids(random))) for rows in (300, 4))
    assert few == 1
    assert many > 50


def test_sizes_are_served_ones():
    sizes = list(Sweeps(supply(FLOATS)).sizes())
    assert {one["batch"] for one in sizes} >= set(range(1, 321))
    asked = list(Sweeps(supply(FLOATS, batch_sizes=[1, 4])).sizes())
    assert {one["batch"] for one in asked} <= {1, 2, 4}


def test_what_a_module_holds_for_places_says_how_long_inputs_may_be():
    class Placed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)
            self.places = nn.Parameter(torch.zeros(1, 24, 8))
            self.register_buffer("mask", torch.ones(16, 16))

    assert list_lengths(Placed()) == [16, 24, 50]


def test_sizes_just_beyond_what_a_graph_cuts_at_are_listed():
    stored = {"ends": np.array([4096]), "axes": np.array([2]), "last": np.array([2**63 - 1]), "weight": np.ones(5)}
    assert list_cuts(stored) == [4097]
