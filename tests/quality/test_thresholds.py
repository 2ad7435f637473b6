"""Every threshold at once: what trying them one by one shows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from onnxproof.quality.thresholds import Sweep
from onnxproof.request.evaluation import parse_cost, parse_goal
from quality.scored import binary


def test_a_sweep_answers_for_every_threshold():
    labels, logits = binary(500, 0.3)
    logits = np.round(logits, 1)  # ties
    sweep = Sweep.of(logits, labels == 1)
    assert sweep.roc_auc() == pytest.approx(sk.roc_auc_score(labels, logits))
    assert sweep.average_precision() == pytest.approx(sk.average_precision_score(labels, logits))
    for threshold in (-2.0, -0.05, 0.3, 1.7, 9.0):
        decided = logits >= threshold
        counts = sweep.at(threshold)
        assert counts.tp == int((decided & (labels == 1)).sum())
        assert counts.fp == int((decided & (labels == 0)).sum())


def test_goals_choose_what_trying_all_thresholds_chooses():
    labels, logits = binary(400, 0.2, seed=3)
    sweep = Sweep.of(logits, labels == 1)
    tried = [sweep.at(t) for t in np.unique(logits)]
    threshold = sweep.choose(parse_goal("recall>=0.9"))
    assert sweep.at(threshold).precision == max(c.precision for c in tried if c.recall >= 0.9)
    assert sweep.at(threshold).recall >= 0.9
    assert sweep.at(sweep.choose(parse_goal("max:f1"))).f1 == max(c.f1 for c in tried)
    cheap = sweep.at(sweep.choose(parse_cost("fn=100,fp=1")))
    assert 100 * cheap.fn + cheap.fp == min(100 * c.fn + c.fp for c in tried)
    assert sweep.choose(parse_goal("precision>=1.0")) is not None or max(c.precision for c in tried) < 1
    assert len(Sweep.of(np.arange(10_000.0), np.arange(10_000) % 7 == 0).curve().recall) <= 512
