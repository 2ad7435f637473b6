"""Decisions that changed: what legal roundings of the truth explain."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import Rejected
from onnxproof.quality.farthest_scores import EXAMINED, Farthest
from onnxproof.quality.flips import Explainer, find_changed, measure_margin
from onnxproof.quality.rows import Batch
from onnxproof.quality.task import Plan, decide

PLAN = Plan("binary", "y", "logit", 1, ("no", "yes"), (0, 1))
MANY = Plan("multiclass", "y", "logit", 3, ("a", "b", "c"), (0, 1, 2))


class Double:
    """A truth, and roundings of it by up to `noise`."""

    def __init__(self, truth, noise):
        self.truth, self.noise = np.asarray(truth, np.float64), noise

    def run(self, inputs):
        return {"y": self.truth[inputs["row"]]}

    def sample(self, inputs, seed):
        signs = np.random.default_rng(seed).choice((-1, 1), len(inputs["row"]))
        return {"y": self.truth[inputs["row"]] + signs * self.noise}


class Eager:
    def run(self, inputs):
        raise Rejected("not asked for")


def explained(truth, noise, baseline, candidate, plan=PLAN):
    sides = {"baseline": np.float32(baseline), "candidate": np.float32(candidate)}
    decisions = {side: decide(scores, plan) for side, scores in sides.items()}
    assert find_changed(decisions["baseline"], decisions["candidate"]).all()
    rows = {"row": np.arange(len(baseline))}
    return Explainer(Eager(), Double(truth, noise), plan).explain(rows, sides, decisions)


def test_a_flip_within_rounding_is_explained_and_one_beyond_is_not():
    close = explained([0.0, 0.0], 1e-4, [1e-4, 1e-4], [-1e-4, -2.0])
    assert close.explained.tolist() == [True, False]
    assert close.of(1) == {
        "margin": pytest.approx(1e-4),
        "truth_margin": 0.0,
        "allowed": pytest.approx(8e-4),
        "explained": False,
    }


def test_a_decision_for_nothing_is_never_explained():
    assert explained([0.0], 1e-4, [1e-4], [np.nan]).explained.tolist() == [False]


def test_margins_prefer_the_first_decision():
    assert measure_margin(np.array([2.0, -1.0]), PLAN, np.array([1, 1]), np.array([0, 0])).tolist() == [2.0, -1.0]
    scores = np.array([[1.0, 4.0, 2.0]])
    assert measure_margin(scores, MANY, np.array([1]), np.array([2])).tolist() == [2.0]
    labels = Plan("multilabel", "y", "logit", 2, ("a", "b"), (0, 1))
    assert measure_margin(np.array([[3.0, -1.0]]), labels, np.array([[1, 0]]), np.array([[0, 0]])).tolist() == [3.0]
    assert find_changed(np.array([[1, 0], [1, 1]]), np.array([[1, 1], [1, 1]])).tolist() == [True, False]


def test_the_farthest_examples_are_examined_in_units_of_rounding():
    baseline = np.linspace(1, 2, 50).astype(np.float32)
    candidate = baseline.copy()
    candidate[[3, 10, 20, 30, 40, 44]] += np.float32([0.5, 0.1, 0.2, 0.3, 0.4, 1e-7])
    farthest = Farthest(None)
    for start in (0, 25):
        part = slice(start, start + 25)
        batch = Batch(start, {"row": np.arange(50)[part]}, np.zeros(25), None, None)
        sides = {"baseline": baseline[part], "candidate": candidate[part]}
        farthest.see(batch, sides, np.abs(sides["candidate"] - sides["baseline"]))
    found = farthest.examine(lambda: Explainer(Eager(), Double(baseline, 0.01), PLAN))
    assert list(found) == ["3", "40", "30", "20"]
    assert len(found) == EXAMINED
    assert found["3"]["times_rounding"] == pytest.approx(0.5 / 0.08, rel=1e-5)


def test_a_batch_that_the_module_fixes_is_filled_with_the_same_row():
    seen = []

    class Fixed(Double):
        def run(self, inputs):
            seen.append(inputs["row"].tolist())
            return super().run(inputs)

    baseline, candidate = np.float32([1, 1, 1]), np.float32([1, 2, 1])
    farthest = Farthest(4)
    sides = {"baseline": baseline, "candidate": candidate}
    farthest.see(Batch(0, {"row": np.arange(3)}, np.zeros(3), None, None), sides, np.abs(candidate - baseline))
    farthest.examine(lambda: Explainer(Eager(), Fixed(baseline, 0.01), PLAN))
    assert seen == [[1, 1, 1, 1]]
