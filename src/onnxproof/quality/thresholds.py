"""All thresholds at once: scores are sorted one time, and every question about a threshold is a look into cumulative counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.proof.thresholds import Curve, Rates
from onnxproof.request.evaluation import Goal

Floats = NDArray[np.float64]
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
    def of(scores: NDArray[Any], positive: NDArray[np.bool_]) -> Sweep:
        """Sort and count; scores that are NaN are never decided for."""
        known = ~np.isnan(scores)
        chosen, truth = scores[known], positive[known]
        order = np.argsort(-chosen, kind="stable")
        ranked, truth = chosen[order], truth[order]
        ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1) if len(ranked) else np.zeros(0, np.int64)
        hits = np.cumsum(truth, dtype=np.int64)[ends]
        positives = int(positive.sum())
        return Sweep(ranked[ends].astype(np.float64), hits, ends + 1 - hits, positives, int(len(positive) - positives))

    @property
    def recall(self) -> Floats:
        """Share of positives found."""
        return np.asarray(self.hits / max(self.positives, 1))

    @property
    def precision(self) -> Floats:
        """Share of the alarms that are right."""
        return np.asarray(self.hits / np.maximum(self.hits + self.alarms, 1))

    @property
    def specificity(self) -> Floats:
        """Share of negatives left alone."""
        return np.asarray(1.0 - self.alarms / max(self.negatives, 1))

    @property
    def f1(self) -> Floats:
        """Harmonic mean of precision and recall."""
        return np.asarray(2.0 * self.hits / np.maximum(self.hits + self.alarms + self.positives, 1))

    @property
    def accuracy(self) -> Floats:
        """Share of decisions that are right."""
        return (self.hits + self.negatives - self.alarms) / max(self.positives + self.negatives, 1)

    def roc_auc(self) -> float:
        """Area under the ROC curve; NaN with one class only."""
        if not self.positives or not self.negatives:
            return float("nan")
        x = np.concatenate([[0.0], self.alarms / self.negatives, [1.0]])
        y = np.concatenate([[0.0], self.recall, [1.0]])
        return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2.0))

    def average_precision(self) -> float:
        """Area under the precision–recall curve, in steps; NaN without positives."""
        if not self.positives:
            return float("nan")
        return float(np.sum(np.diff(np.concatenate([[0.0], self.recall])) * self.precision))

    def cost(self, costs: Mapping[str, float]) -> Floats:
        """What decisions at each threshold cost per example."""
        counts = {
            "tp": self.hits,
            "fp": self.alarms,
            "fn": self.positives - self.hits,
            "tn": self.negatives - self.alarms,
        }
        total = sum((costs.get(name, 0.0) * count for name, count in counts.items()), np.zeros(len(self.hits)))
        return np.asarray(total / max(self.positives + self.negatives, 1))

    def place(self, threshold: float) -> int:
        """The last distinct score at or above a threshold; −1 where none is."""
        return int(np.searchsorted(-self.scores, -threshold, side="right")) - 1

    def at(self, threshold: float) -> Rates:
        """Counts and rates with a threshold on the scores' scale."""
        i = self.place(threshold)
        hits, alarms = (int(self.hits[i]), int(self.alarms[i])) if i >= 0 else (0, 0)
        return Rates(
            tp=hits,
            fp=alarms,
            fn=self.positives - hits,
            tn=self.negatives - alarms,
            recall=hits / max(self.positives, 1),
            precision=hits / max(hits + alarms, 1),
            specificity=1.0 - alarms / max(self.negatives, 1),
            f1=2.0 * hits / max(hits + alarms + self.positives, 1),
            accuracy=(hits + self.negatives - alarms) / max(self.positives + self.negatives, 1),
        )

    def choose(self, goal: Goal) -> float | None:
        """The threshold for a goal, half-way to the next score below so that rounding does not decide; None where no one reaches it."""
        if not len(self.scores):
            return None
        place = _best(self, goal)
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
        if count > points:
            by_rank = np.linspace(0, count - 1, points // 2).astype(int)
            by_recall = np.searchsorted(self.hits, np.linspace(0, self.positives, points // 2))
            places = np.unique(np.clip(np.concatenate([by_rank, by_recall]), 0, count - 1))[:points]
        else:
            places = np.arange(count)
        places = places[::-1]
        columns = {
            "threshold": self.scores,
            "tp": self.hits,
            "fp": self.alarms,
            "fn": self.positives - self.hits,
            "tn": self.negatives - self.alarms,
            "precision": self.precision,
            "recall": self.recall,
        }
        return Curve(**{name: tuple(values[places].tolist()) for name, values in columns.items()})


def _best(sweep: Sweep, goal: Goal) -> int | None:
    """The place of the best threshold; −1 for above every score."""
    if goal.kind == "cost":
        costs = sweep.cost(goal.costs)
        nobody = goal.costs.get("fn", 0.0) * sweep.positives + goal.costs.get("tn", 0.0) * sweep.negatives
        best = int(np.argmin(costs))
        return -1 if nobody / max(sweep.positives + sweep.negatives, 1) < costs[best] else best
    values: Floats = getattr(sweep, goal.metric)
    if goal.kind == "max":
        return int(np.argmax(values))
    other = sweep.precision if goal.metric == "recall" else sweep.recall
    reached = values >= goal.value
    if not reached.any():
        return None
    return int(np.argmax(np.where(reached, other, -1.0)))
