"""The module's decisions, and slopes towards them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from onnxproof.search.watch import ModuleWatcher
from onnxproof.subject.assembly import make_subject


class Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def watcher(function) -> ModuleWatcher:
    return ModuleWatcher(make_subject(Of(function).eval(), (torch.ones(2, 3),)))


X = {"x": np.float32([[1, 2, 3], [-4, 5, 6]])}


@pytest.mark.parametrize(
    ("function", "decision", "places"),
    [
        (torch.relu, "relu", [0]),
        (lambda x: x.clamp(-1, 2), "clamp", [-1, 2]),
        (lambda x: x.clamp(max=2), "clamp", [2]),
        (F.hardtanh, "hardtanh", [-1, 1]),
        (lambda x: F.softplus(x, 2.0), "softplus", [10]),
        (lambda x: F.hardshrink(x, 0.25), "hardshrink", [0.25, -0.25]),
        (lambda x: x > 4, "gt", [4]),
        (lambda x: torch.maximum(x, torch.tensor(1.5)), "maximum", [1.5]),
        (torch.exp, "exp", [88.8, -104]),
    ],
)
def test_a_decision_is_seen_with_its_places(function, decision, places):
    seen = watcher(function).observe(X)
    found = {
        goal: number
        for goal, number in seen.items()
        if goal.endswith(" above") and " row" not in goal and " two" not in goal
    }
    assert found == {f"module {decision}#0.{i} above": pytest.approx(6 - p, rel=1e-6) for i, p in enumerate(places)}


def test_a_pole_is_near_where_the_size_is_small():
    seen = watcher(lambda x: 1 / (x - 1).norm(dim=-1)).observe(X)
    assert seen["module norm#0.0 below"] == pytest.approx(1e-6)
    assert seen["module norm#0.0 row below"] < 0


def test_the_slope_leads_to_the_goal():
    watched = watcher(lambda x: torch.relu(x.sum(-1, keepdim=True) - 100))
    slope = watched.slope(X, "module relu#0.0 above")
    assert slope["x"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert watched.slope(X, "module relu#0.0 below")["x"].tolist() == [[-1, -1, -1], [-1, -1, -1]]
    assert watched.slope(X, "module relu#7.0 above") is None


def test_the_results_of_calls_are_kept_and_are_goals_too():
    watched = watcher(lambda x: x * 2 + 1)
    calls = watched.results(X)
    assert [result[0].tolist() for result in calls.values()] == [[1, 2, 3], [2, 4, 6], [3, 5, 7]]  # the copy first
    slope = watched.slope(X, "graph Clip#0.0 above", (max(calls), 0.5))
    assert slope["x"][0].tolist() == [0, 0, 2]


def test_a_module_that_refuses_shows_what_came_before():
    def refuses(x):
        torch.relu(x)
        raise ValueError("no")

    subject = make_subject(Of(torch.relu).eval(), (torch.ones(2, 3),))
    subject.module.function = refuses
    assert "module relu#0.0 above" in ModuleWatcher(subject).observe(X)
