"""The smallest set of nodes in float: it meets the goal, and no node of it can be put back."""

from __future__ import annotations

import random

import pytest

from onnxproof.quantization.floats import EVALUATIONS, find_kept


def search(costs, limit, order=None, budget=EVALUATIONS):
    """Nodes whose costs add up; the goal holds where those that are not kept add up to no more than the limit."""
    tried = []

    def holds(nodes):
        tried.append(nodes)
        return sum(cost for name, cost in costs.items() if name not in nodes) <= limit

    ranked = order or sorted(costs, key=lambda name: -costs[name])
    return find_kept(ranked, holds, budget), tried, holds


@pytest.mark.parametrize("needed", [1, 2, 3, 4, 5])
def test_it_is_minimal_within_ten_evaluations_of_many_nodes(needed):
    costs = {f"n{i}": 10.0 if i < needed else 0.01 for i in range(100)}
    kept, tried, holds = search(costs, 5.0)
    assert kept.minimal
    assert set(kept.nodes) == {f"n{i}" for i in range(needed)}
    assert kept.evaluations == len(tried) <= EVALUATIONS
    assert holds(kept.nodes)


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_ranking_costs_evaluations_and_not_the_answer(seed):
    chance = random.Random(seed)
    costs = {f"n{i}": chance.choice([0.0, 0.1, 1.0, 3.0]) for i in range(12)}
    order = sorted(costs, key=lambda name: -costs[name] * chance.uniform(0.3, 3))
    limit = 0.4 * sum(costs.values())
    kept, _, holds = search(costs, limit, order, budget=100)
    assert kept.minimal
    assert holds(kept.nodes)
    assert not any(holds(tuple(n for n in kept.nodes if n != node)) for node in kept.nodes)


def test_where_evaluations_end_the_best_is_told_as_such():
    kept, _, holds = search({f"n{i}": 1.0 for i in range(64)}, 20.5)
    assert not kept.minimal
    assert kept.evaluations <= EVALUATIONS
    assert kept.nodes is None or holds(kept.nodes)


def test_a_goal_that_nothing_meets():
    kept, _, _ = search({"a": 1.0, "b": 1.0}, -1.0)
    assert kept.nodes is None
    assert not kept.minimal
