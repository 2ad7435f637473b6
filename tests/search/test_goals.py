"""On which side of a decision values are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnxproof.search.goals import SIDES, Coverage, leave_half, leave_integer, list_goals, split, steer


def test_goals_know_how_far_they_are():
    seen = list_goals("relu#0", np.array([[1.0, -2.0], [3.0, 4.0]]))
    assert seen == {"relu#0 above": 4.0, "relu#0 below": 2.0, "relu#0 row above": 3.0, "relu#0 row below": -1.0}
    three = list_goals("clip#0", np.array([[5.0, -1.0, -2.0], [1.0, -3.0, 0.5]]))
    assert three["clip#0 two above"] == 0.5
    assert list_goals("round#0=", leave_half(np.array([0.5, 1.2])))["round#0= above"] > 0
    assert list_goals("round#0=", leave_half(np.array([0.4999, 1.2])))["round#0= above"] < 0
    assert split("relu#0 row below") == ("relu#0", "row below")
    coverage = Coverage()
    assert coverage.add(seen) == ["relu#0 above", "relu#0 below", "relu#0 row above"]
    assert coverage.missing() == ["relu#0 row below"]


@pytest.mark.parametrize("side", SIDES)
def test_the_slope_of_a_goal_raises_its_number(side):
    start = torch.tensor([[0.3, -0.2, 0.1], [-0.5, 0.4, -0.1]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(steer(start, side), start)
    before = list_goals("d", start.detach().numpy())[f"d {side}"]
    assert list_goals("d", (start + 0.01 * slope).detach().numpy())[f"d {side}"] > before


def test_a_jump_is_hit_exactly_or_not():
    assert (leave_integer(np.array([2.0, 2.4])) > 0).tolist() == [True, False]
    assert (leave_half(torch.tensor([2.5, 2.4])) > 0).tolist() == [True, False]
    assert list_goals("d", np.zeros((0, 3))) == {}
