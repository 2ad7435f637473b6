"""The worker of an evaluation: what is measured, what is refused, and what stays a note."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnxproof.errors import InputError
from onnxproof.pipeline import events
from onnxproof.pipeline.evaluating import _measure_served, run_evaluate
from onnxproof.pipeline.workshop import Workshop
from onnxproof.request.evaluation import EvaluateSettings
from pipeline.small import UNKNOWN_OPERATOR, Told, artifact_of, twice
from quality.scored import scores_of

X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)


def evaluated(tmp_path, *, body=None, required=True, fields=None, **settings) -> Told:
    np.savez(tmp_path / "data.npz", **(fields or {"x": X, "labels": X.argmax(axis=1)}))
    asked = EvaluateSettings(str(tmp_path / "data.npz"), required=required, **settings)
    told = Told()
    artifact = artifact_of(tmp_path, body) if body else artifact_of(tmp_path)
    run_evaluate(told, replace(twice(out=str(tmp_path)), evaluate=asked), artifact, stateful=False, shop=Workshop())
    return told


def test_the_data_go_through_both_sides(tmp_path):
    told = evaluated(tmp_path, task="multiclass")
    (measured,) = told.of(events.Measured)
    assert measured.quality.n == 60
    assert measured.quality.candidate["accuracy"] == measured.quality.baseline["accuracy"] == 1.0
    assert [event.stage for event in told.of(events.Entered)] == ["evaluate", "measure"]
    assert told.of(events.Evaluated)[-1].done == 60


def test_data_without_labels_are_refused_where_an_evaluation_was_asked_for(tmp_path):
    with pytest.raises(InputError, match=r"has no labels.*it has x"):
        evaluated(tmp_path, fields={"x": X})
    assert evaluated(tmp_path, fields={"x": X}, required=False) == [events.Entered("evaluate")]


def test_labels_that_nobody_understands_stop_only_what_is_about_them(tmp_path):
    wrong = {"fields": {"x": X, "labels": np.full(60, 7)}, "task": "multiclass"}
    with pytest.raises(InputError):
        evaluated(tmp_path, **wrong)
    told = evaluated(tmp_path, required=False, **wrong)
    assert [event.finding.code for event in told.of(events.Observed)] == ["OX515"]
    assert told.of(events.Measured) == []


def test_a_file_that_is_refused_is_a_finding(tmp_path):
    told = evaluated(tmp_path, body=UNKNOWN_OPERATOR)
    assert "NoSuchOperator" in told.of(events.Observed)[0].finding.message


def test_what_the_other_preprocessing_flips_and_costs():
    labels = np.array([0, 1, 1, 0])
    scores = scores_of(labels, np.array([-1, 1, 1, -1], np.float32), settings=EvaluateSettings("none", task="binary"))
    served = replace(scores, columns={**scores.columns, "served": np.array([0, 0, 1, 1])})
    assert _measure_served(served) == {
        "flips": 2,
        "of": 4,
        "rows": (1, 3),
        "accuracy": {"served": 0.5, "candidate": 1.0},
    }


def test_for_numbers_it_is_the_difference():
    numbers = np.array([1.0, 2.0, 4.0], np.float32)
    scores = scores_of(numbers, numbers, settings=EvaluateSettings("none", task="regression"))
    served = replace(scores, columns={**scores.columns, "served": scores.sides["candidate"].decisions + 0.5})
    assert _measure_served(served) == {"served_difference": {"max_abs": 0.5, "mean_abs": 0.5}}
