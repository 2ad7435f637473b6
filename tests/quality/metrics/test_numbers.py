"""Regression: scikit-learn's metrics, and intervals that fit them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics as sk

from onnxproof.errors import InputError
from onnxproof.quality.intervals import Bootstrap
from onnxproof.quality.metrics import measure
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.numbers import measure_numbers
from onnxproof.request.evaluation import EvaluateSettings
from quality.scored import scores_of

GENERATOR = np.random.default_rng(0)
Y = GENERATOR.normal(size=700)
GUESS = (Y + GENERATOR.normal(0, 0.3, 700)).astype(np.float32)


def test_errors_are_scikit_learns():
    measured = measure(scores_of(Y, GUESS[:, None]))
    numbers = measured.values["candidate"]
    assert numbers["mae"] == pytest.approx(sk.mean_absolute_error(Y, GUESS))
    assert numbers["r2"] == pytest.approx(sk.r2_score(Y, GUESS))
    assert numbers["rmse"] == pytest.approx(math.sqrt(sk.mean_squared_error(Y, GUESS)))
    assert numbers["relative_error"] == pytest.approx(numbers["mae"] / np.abs(Y).mean())
    for name, value in numbers.items():
        low, high = measured.intervals[name]["candidate"]
        assert low < value < high, name
        assert measured.intervals[name]["difference"] == [0.0, 0.0]


def test_labels_that_never_change_explain_nothing():
    values = measure(scores_of(np.full(700, 0.5), GUESS[:, None])).values["candidate"]
    assert "r2" not in values
    assert "mae" in values


def test_columns_must_be_as_many_as_labels():
    settings = EvaluateSettings("none", task="regression")
    scores = scores_of(Y, np.stack([GUESS, GUESS], axis=1), settings=settings)
    with pytest.raises(InputError, match="the scores have 2 columns and the labels 1"):
        measure_numbers(scores, Measured(), Bootstrap(scores.n))
