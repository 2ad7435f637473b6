"""Metrics of decisions: those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from onnxproof.quality.metrics import measure
from onnxproof.quality.metrics.decisions import average_classes
from onnxproof.quality.task import Plan
from quality.scored import binary, scores_of


def test_binary_metrics_are_scikit_learns():
    labels, logits = binary(2000, 0.2)
    values = measure(scores_of(labels, logits)).values["candidate"]
    p, decided = 1 / (1 + np.exp(-logits.astype(np.float64))), (logits >= 0).astype(int)
    expected = {
        "accuracy": sk.accuracy_score(labels, decided),
        "precision": sk.precision_score(labels, decided),
        "recall": sk.recall_score(labels, decided),
        "f1": sk.f1_score(labels, decided),
        "roc_auc": sk.roc_auc_score(labels, logits),
        "pr_auc": sk.average_precision_score(labels, logits),
        "log_loss": sk.log_loss(labels, p),
        "brier": sk.brier_score_loss(labels, p),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_multiclass_metrics_are_scikit_learns():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 1500)
    logits = (np.eye(4)[labels] * 1.5 + generator.normal(size=(1500, 4))).astype(np.float32)
    measured = measure(scores_of(labels, logits))
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    decided = logits.argmax(axis=1)
    expected = {
        "accuracy": sk.accuracy_score(labels, decided),
        "recall": sk.recall_score(labels, decided, average="macro"),
        "f1_weighted": sk.f1_score(labels, decided, average="weighted"),
        "roc_auc": sk.roc_auc_score(labels, p, multi_class="ovr", average="macro"),
        "log_loss": sk.log_loss(labels, p),
    }
    values = measured.values["candidate"]
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert measured.confusion.candidate == sk.confusion_matrix(labels, decided).tolist()
    for name, ends in measured.intervals.items():
        assert ends["candidate"][0] <= values[name] + 0.01, name
        assert ends["candidate"][1] >= values[name] - 0.01, name


def test_multilabel_metrics_are_scikit_learns():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (800, 5))
    p = np.clip(labels * 0.4 + generator.random((800, 5)) * 0.6, 0, 1).astype(np.float32)
    scores = scores_of(labels, p)
    assert scores.plan.task == "multilabel"
    values = measure(scores).values["candidate"]
    assert values["f1"] == pytest.approx(sk.f1_score(labels, p >= 0.5, average="macro"))
    assert values["pr_auc"] == pytest.approx(sk.average_precision_score(labels, p, average="macro"))
    assert values["accuracy"] == pytest.approx(sk.accuracy_score(labels, p >= 0.5))
    assert values["hamming_accuracy"] == pytest.approx(1 - sk.hamming_loss(labels, p >= 0.5))
    for average in ("micro", "weighted"):
        expected = sk.precision_recall_fscore_support(labels, p >= 0.5, average=average)[:3]
        assert [values[f"{name}_{average}"] for name in ("precision", "recall", "f1")] == pytest.approx(expected)


def test_a_class_that_is_only_decided_for_counts_as_scikit_learn_counts_it():
    labels, decided = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 2, 1, 1, 0, 0])
    measured = measure(scores_of(labels, np.eye(4, dtype=np.float32)[decided] * 3 - 1))
    values = measured.values["candidate"]
    expected = sk.precision_recall_fscore_support(labels, decided, average="macro", zero_division=0)[:3]
    assert [values[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected)
    assert values["balanced_accuracy"] == pytest.approx(np.mean([2 / 3, 2 / 3]))
    assert measured.per_class["1"]["candidate"]["recall"] == pytest.approx(2 / 3)


def test_a_decision_that_is_no_class_is_wrong_and_nothing_else():
    labels, decided = np.arange(300) % 3, np.arange(300) % 3
    scores = scores_of(labels, decided)
    scores.sides["candidate"].decisions[-1] = 7
    measured = measure(scores)
    assert measured.values["candidate"]["accuracy"] == pytest.approx(299 / 300)
    assert sum(map(sum, measured.confusion.candidate)) == 299
    assert measured.per_class["2"]["candidate"]["recall"] == pytest.approx(99 / 100)
    assert measured.calibration == {}


@pytest.mark.parametrize("several", [False, True])
def test_calibration_is_the_distance_of_probability_and_share_per_bin(several):
    generator = np.random.default_rng(1)
    p = generator.random((3000, 2)) if several else generator.random(3000)
    labels = (generator.random(p.shape) < p**2).astype(int)
    measured = measure(scores_of(labels, p.astype(np.float32)))
    kept = p.astype(np.float32).astype(np.float64).ravel()
    places, hit = np.minimum((kept * 15).astype(int), 14), labels.ravel()
    gaps = [abs(kept[places == b].sum() - hit[places == b].sum()) for b in range(15)]
    assert measured.values["candidate"]["ece"] == pytest.approx(sum(gaps) / kept.size)
    assert [one.count for one in measured.calibration["candidate"]] == np.bincount(places).tolist()
    low, high = measured.intervals["ece"]["candidate"]
    assert low < measured.values["candidate"]["ece"] < high


@pytest.mark.parametrize("rate", ["precision", "recall", "f1"])
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_averages_of_counts_are_scikit_learns(rate, average):
    generator = np.random.default_rng(2)
    labels, decided = generator.integers(0, 4, (2, 200))
    counts = [np.bincount(labels[labels == decided], minlength=4), np.bincount(decided), np.bincount(labels)]
    plan = Plan("multiclass", "y", "logit", 4, tuple("abcd"), (0, 1, 2, 3))
    value = average_classes(rate, average, plan)(np.concatenate(counts)[None].astype(float))
    assert value == pytest.approx([getattr(sk, f"{rate}_score")(labels, decided, average=average)])
