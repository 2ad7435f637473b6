"""Areas under curves with their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics import measure
from onnxproof.quality.metrics.areas import AUC_CLASSES, _bin_scores, _measure_pr_area, _measure_roc_area
from quality.scored import binary, scores_of


def test_scores_that_are_infinite_are_ranked_too():
    labels, logits = binary(500)
    logits[:20], logits[20:30] = -np.inf, np.inf
    values = measure(scores_of(labels, logits)).values["candidate"]
    finite = np.clip(logits, -100, 100)
    assert values["roc_auc"] == pytest.approx(sk.roc_auc_score(labels, finite))
    assert values["pr_auc"] == pytest.approx(sk.average_precision_score(labels, finite))


def test_the_areas_of_a_replicate_are_those_of_its_examples():
    labels, logits = binary(300)
    bootstrap = Bootstrap(300, seed=3, replicates=5)
    places, width = _bin_scores(logits, 1024)
    counts = bootstrap.totals(bootstrap.sums(places * 2 + labels, None, 2 * width)).reshape(-1, width, 2)
    roc, pr = (area(counts[:, :, 1], counts[:, :, 0]) for area in (_measure_roc_area, _measure_pr_area))
    for i in range(5):
        times = np.rint(bootstrap.totals(np.eye(300))[i]).astype(int)
        rows = np.repeat(np.arange(300), times)
        assert roc[i] == pytest.approx(sk.roc_auc_score(labels[rows], logits[rows]))
        assert pr[i] == pytest.approx(sk.average_precision_score(labels[rows], logits[rows]))


def test_a_class_without_examples_has_no_area_and_many_classes_no_intervals():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 400)
    measured = measure(scores_of(labels, generator.normal(size=(400, 4)).astype(np.float32)))
    assert np.isnan(measured.per_class["3"]["candidate"]["roc_auc"])
    assert "roc_auc_low" not in measured.per_class["3"]["candidate"]
    assert "roc_auc_low" in measured.per_class["0"]["candidate"]
    many = generator.normal(size=(400, AUC_CLASSES + 1)).astype(np.float32)
    wide = measure(scores_of(labels, many))
    assert "roc_auc" in wide.values["candidate"]
    assert "roc_auc" not in wide.intervals
