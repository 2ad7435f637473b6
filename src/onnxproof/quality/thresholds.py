"""All thresholds at once: scores are sorted one time, and every question about a threshold is a look into cumulative counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.proof.thresholds import Curve, Rates
from onnxproof.request.evaluation import Goal
from onnxproof.tensors.arrays import Array, Floats

CURVE_POINTS = 512


@dataclass(frozen=True)
class Sweep:
    """Counts for every distinct score taken as threshold (decide for the positive class at this score and above)."""

    scores: Floats
    """Distinct scores, the highest first."""
    hits: NDArray[np.int64]
    """True positives at each of them."""
    alarms: NDArray[np.int64]
    """False positives at each of them."""
    positives: int
    negatives: int

    @staticmethod
    def of(scores: Array, positive: NDArray[np.bool_]) -> Sweep:
        """Sort and count; scores that are NaN are never decided for."""
        known = ~np.isnan(scores)
        chosen, truth = scores[known], positive[known]
        order = np.argsort(-chosen, kind="stable")
        ranked, truth = chosen[order], truth[order]
        # Compared, not subtracted: the difference of two infinite scores is NaN, and they are one threshold.
        ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])
        hits = np.cumsum(truth, dtype=np.int64)[ends]
        positives = int(positive.sum())
        return Sweep(ranked[ends].astype(np.float64), hits, ends + 1 - hits, positives, int(len(positive) - positives))

    @property
    def rates(self) -> dict[str, Floats]:
        """Rates at each threshold, under the names that goals have."""
        decided = self.hits + self.alarms
        return {
            "recall": self.hits / max(self.positives, 1),
            "precision": self.hits / np.maximum(decided, 1),
            "specificity": 1.0 - self.alarms / max(self.negatives, 1),
            "f1": 2.0 * self.hits / np.maximum(decided + self.positives, 1),
            "accuracy": (self.hits + self.negatives - self.alarms) / max(self.positives + self.negatives, 1),
        }

    def roc_auc(self) -> float:
        """Area under the ROC curve; NaN with one class only."""
        if not self.positives or not self.negatives:
            return float("nan")
        x = np.concatenate([[0.0], self.alarms / self.negatives, [1.0]])
        y = np.concatenate([[0.0], self.hits / self.positives, [1.0]])
        return float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)

    def average_precision(self) -> float:
        """Area under the precision–recall curve, in steps; NaN without positives."""
        if not self.positives:
            return float("nan")
        return float(np.sum(np.diff(self.rates["recall"], prepend=0.0) * self.rates["precision"]))

    @property
    def counts(self) -> dict[str, NDArray[np.int64]]:
        """Decisions of each kind at each threshold."""
        missed, spared = self.positives - self.hits, self.negatives - self.alarms
        return {"tp": self.hits, "fp": self.alarms, "fn": missed, "tn": spared}

    def cost(self, costs: Mapping[str, float]) -> Floats:
        """What decisions at each threshold cost per example."""
        total = sum((costs.get(name, 0.0) * count for name, count in self.counts.items()), np.zeros(len(self.hits)))
        return np.asarray(total / max(self.positives + self.negatives, 1))

    def at(self, threshold: float, costs: Mapping[str, float] | None = None) -> Rates:
        """Counts and rates with a threshold on the scores' scale, and the cost where there are costs."""
        above = int(np.searchsorted(-self.scores, -threshold, side="right"))
        hits, alarms = (np.append(0, counts)[above : above + 1] for counts in (self.hits, self.alarms))
        here = replace(self, hits=hits, alarms=alarms)
        counts = {name: int(count[0]) for name, count in here.counts.items()}
        rates: dict[str, Any] = {name: float(rate[0]) for name, rate in here.rates.items()}
        return Rates(**counts, **rates, cost=float(here.cost(costs)[0]) if costs else None)

    def choose(self, goal: Goal) -> float | None:
        """The threshold for a goal, half-way to the next score below so that rounding does not decide; None where no one reaches it."""
        place = _find_best(self, goal) if len(self.scores) else None
        if place is None:
            return None
        if place == -1:  # never to decide for the positive class is cheapest
            return float(np.nextafter(self.scores[0], np.inf))
        if place == len(self.scores) - 1:
            return float(self.scores[place])
        return float((self.scores[place] + self.scores[place + 1]) / 2.0)

    def curve(self, points: int = CURVE_POINTS) -> Curve:
        """Columns of counts, precision and recall at up to `points` thresholds, even in recall and in rank; the lowest threshold first."""
        count = len(self.scores)
        places = np.arange(count)
        if count > points:
            by_rank = np.linspace(0, count - 1, points // 2).astype(int)
            by_recall = np.searchsorted(self.hits, np.linspace(0, self.positives, points // 2))
            places = np.unique(np.clip(np.concatenate([by_rank, by_recall]), 0, count - 1))[:points]
        columns = {"threshold": self.scores, **self.counts, **self.rates}
        return Curve(**{one.name: tuple(columns[one.name][places[::-1]].tolist()) for one in fields(Curve)})


def _find_best(sweep: Sweep, goal: Goal) -> int | None:
    """The place of the best threshold; −1 for above every score."""
    if goal.kind == "cost":
        costs = sweep.cost(goal.costs)
        best = int(np.argmin(costs))
        return -1 if (sweep.at(np.inf, goal.costs).cost or 0.0) < costs[best] else best
    rates = sweep.rates
    values = rates[goal.metric]
    if goal.kind == "max":
        return int(np.argmax(values))
    other = rates["precision" if goal.metric == "recall" else "recall"]
    reached = values >= goal.value
    return int(np.argmax(np.where(reached, other, -1.0))) if reached.any() else None
