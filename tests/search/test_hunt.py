"""The hunt's order and what it learns, with a guide and a verifier made of plain functions."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
from torch import nn

from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use
from onnxproof.parity.work import Work
from onnxproof.search.goals import list_goals
from onnxproof.search.hunt import ASKED, JUDGED, Find, Hunt, Trial


class Sums:
    """One decision: whether the sum of a row exceeds 2500, which no ordinary input reaches."""

    def observe(self, inputs):
        return list_goals("sum#0.0", inputs["x"].astype(np.float64).sum(-1, keepdims=True) - 2500)

    def number(self, inputs, goal):
        return self.observe(inputs)[goal]

    def slope(self, inputs, goal):
        return {"x": np.ones(inputs["x"].shape) * (1 if goal.endswith("above") else -1)}


def supply(*domains, batch_sizes=None):
    subject = SimpleNamespace(batch="batch", limits={}, module=nn.Identity(), sizes=lambda: {"batch": 2})
    return SimpleNamespace(
        domains=list(domains), subject=subject, settings=SimpleNamespace(batch_sizes=batch_sizes), bounds={}
    )


FLOATS = infer_domain("x", np.zeros((2, 4), np.float32), {0: "batch"}, None, Use())
IDS = infer_domain("ids", np.zeros((2, 3), np.int64), {0: "batch"}, None, Use(table=700))


class Enough(Exception):
    pass


def tried(hunt_of, count: int, fails=lambda name, inputs: 0):
    """The first inputs of a hunt by name, and what it told."""
    seen, told = {}, []

    def attempt(name, inputs):
        if len(seen) == count:
            raise Enough
        seen[name] = inputs
        return Trial(float(np.abs(inputs["x"]).max()), 0, fails(name, inputs))

    hunt = hunt_of(attempt)
    with suppress(Enough):
        hunt.run(600, lambda outcome, find: told.append((outcome, find)))
    return seen, told


def test_the_same_seed_proposes_the_same_inputs():
    runs = [tried(lambda a, s=seed: Hunt(supply(FLOATS), Sums(), a, s), 30)[0] for seed in (3, 3, 4)]
    same = [all(np.array_equal(runs[0][n]["x"], other[n]["x"]) for n in runs[0] if n in other) for other in runs[1:]]
    assert same == [True, False]


def test_every_id_is_tried_once():
    seen, _ = tried(lambda a: Hunt(supply(FLOATS, IDS), Sums(), a), 12)
    laid = [inputs["ids"] for name, inputs in seen.items() if name.startswith("search/id/")]
    assert set(np.concatenate([ids.ravel() for ids in laid])) == set(range(700))


def test_a_regime_is_reached_by_its_slope_and_its_border_is_tried():
    seen, told = tried(lambda a: Hunt(supply(FLOATS), Sums(), a), 60)
    reached = [name for name, inputs in seen.items() if (inputs["x"].sum(-1) > 2500).any()]
    assert any(name.startswith("search/regime/") for name in reached)
    outcome = told[-1][0]
    assert (outcome.inputs, sum(outcome.moves.values())) == (60, 60)
    assert outcome.reached >= 3
    assert outcome.regimes == 4


def test_it_ends_with_a_grave_find_and_goes_on_after_a_slight_one():
    def fails(name, inputs):
        return {"search/mixture/1": 1, "search/climb/2": 2}.get(name, 0)

    attempts = []
    hunt = Hunt(supply(FLOATS), Sums(), lambda n, i: attempts.append(n) or Trial(1.0, 0, fails(n, i)))
    found: list[Find | None] = []
    best = hunt.run(600, lambda outcome, find: found.append(find))
    assert best is not None
    assert (best.name, best.fails) == ("search/climb/2", 2)
    assert [find.name for find in found if find] == ["search/mixture/1", "search/climb/2"]
    assert attempts[-1] == hunt.outcome.found == "search/climb/2"


class Never(Sums):
    """A goal that no input reaches, and who asks for it."""

    def __init__(self):
        self.asked = 0

    def observe(self, inputs):
        return dict.fromkeys(super().observe(inputs), -1.0)

    def number(self, inputs, goal):
        self.asked += 1
        return super().number(inputs, goal)


def test_the_work_ends_it_wherever_it_is_and_everything_that_is_asked_is_work():
    tiny, guide = Work(1, 1.0, 8), Never()
    hunt = Hunt(supply(FLOATS), guide, lambda n, i: Trial(0.0), work=tiny)
    hunt.run(3 * JUDGED + 10 * ASKED)
    assert 5 <= guide.asked <= 15  # a climb has 24 steps, and goals are many
    assert hunt.outcome.inputs <= 4
    assert not hunt.cut


def test_where_the_clock_ends_it_that_is_known(monkeypatch):
    monkeypatch.setattr("onnxproof.search.hunt.PATIENCE", 0.0)
    hunt = Hunt(supply(FLOATS), Sums(), lambda n, i: Trial(0.0))
    assert hunt.run(1.0) is None
    assert hunt.cut
