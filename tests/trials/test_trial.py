"""Two values that mean something else, and two that do not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from onnxproof.trials.trial import Trial, find_apart

TRUE = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("result", "place"),
    [
        (TRUE, None),
        (TRUE * (1 + 1e-7), None),
        (np.array([1.0, 2.1, 3.0]), 1),
        (np.array([1.0, 2.0, np.nan]), 2),
        (np.array([np.inf, 2.0, 3.0]), 0),
        (np.ones((1, 3)), None),
    ],
)
def test_where_they_part(result, place):
    assert find_apart(result, TRUE, 0.0) == place


def test_integers_part_by_one():
    assert find_apart(np.array([1, 2]), np.array([1, 3]), 0.0) == 1
    assert find_apart(np.array([True]), np.array([True]), 0.0) is None


def test_what_is_less_than_float64_loses_is_nothing():
    assert find_apart(np.array([1e-12]), np.array([0.0]), 1e-9) is None


def test_a_single_number_of_a_piece_is_not_held_at_what_was_recorded():
    """A model's own inputs are: there the example says what is meant."""
    recorded = SimpleNamespace(
        _cut=SimpleNamespace(values={"n": np.array(5)}, steps=[]),
        _ranges={},
        _find_table=lambda piece, name: None,
        _hints=lambda piece: (),
    )
    piece = SimpleNamespace(nodes=())
    assert not Trial._make_domain(recorded, piece, "n").is_number
