"""Metrics as they come together."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.quality.intervals import Bootstrap, Resampled, bound_proportion
from onnxproof.quality.metrics.measured import Measured


def test_a_share_keeps_wilsons_interval_and_gets_the_difference():
    measured, replicates = Measured(), {"baseline": np.linspace(0, 1, 101), "candidate": np.linspace(0, 2, 101)}
    for side in replicates:
        measured.proportion(side, "accuracy", 80, 100)
    measured.bootstrapped("accuracy", replicates)
    entry = measured.intervals["accuracy"]
    assert entry["method"] == "wilson"
    assert entry["candidate"] == list(bound_proportion(80, 100)[1:])
    assert entry["difference"] == pytest.approx([0.025, 0.975])
    measured.bootstrapped("f1", replicates)
    assert measured.intervals["f1"]["candidate"] == pytest.approx([0.05, 1.95])


def test_a_share_of_nothing_is_zero_with_every_rate_possible():
    measured = Measured()
    measured.proportion("candidate", "precision", 0, 0)
    assert measured.values == {"candidate": {"precision": 0.0}}
    assert measured.intervals["precision"]["candidate"] == [0.0, 1.0]


def test_means_leave_out_what_is_not_finite():
    measured, values = Measured(), np.array([1.0, 3.0, np.nan, np.inf] * 10)
    measured.means({"baseline": {"loss": values}, "candidate": {"loss": values + 1}}, Bootstrap(40))
    assert measured.values == {"baseline": {"loss": 2.0}, "candidate": {"loss": 3.0}}
    assert measured.intervals["loss"]["difference"] == pytest.approx([1.0, 1.0])


def test_a_value_is_the_statistic_of_everything():
    sums = {"baseline": np.array([[1.0, 2.0], [3.0, 4.0]]), "candidate": np.array([[2.0, 2.0], [2.0, 2.0]])}
    measured = Measured()
    measured.estimate("ratio", Resampled(Bootstrap(2), sums), lambda s: s[:, 0] / s[:, 1], interval=False)
    assert measured.values == {"baseline": {"ratio": pytest.approx(4 / 6)}, "candidate": {"ratio": 1.0}}
    assert measured.intervals == {}
