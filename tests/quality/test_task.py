"""What scores and labels mean."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import InputError
from onnxproof.quality.task import Plan, decide, encode, select_scores
from onnxproof.quality.task_plan import make_plan
from onnxproof.request.evaluation import EvaluateSettings

RANDOM = np.random.default_rng(0)
FLOATS = RANDOM.normal(size=(60, 3)).astype(np.float32) * 3
SOFT = np.exp(FLOATS) / np.exp(FLOATS).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("scores", "labels", "task", "scale"),
    [
        (FLOATS[:, :1], RANDOM.integers(0, 2, 60), "binary", "logit"),
        (SOFT[:, 0], RANDOM.integers(0, 2, 60).astype(np.float32), "binary", "probability"),
        (FLOATS[:, :2], RANDOM.integers(0, 2, 60).astype(bool), "binary", "logit"),
        (SOFT[:, :2] / SOFT[:, :2].sum(axis=1, keepdims=True), np.array(["no", "yes"] * 30), "binary", "probability"),
        (FLOATS, RANDOM.integers(0, 3, 60), "multiclass", "logit"),
        (SOFT, RANDOM.integers(0, 3, 60)[:, None], "multiclass", "probability"),
        (np.log(SOFT), np.eye(3, dtype=int)[RANDOM.integers(0, 3, 60)], "multiclass", "log-probability"),
        (FLOATS, np.array(["a", "b", "c"] * 20), "multiclass", "logit"),
        (FLOATS, RANDOM.integers(0, 2, (60, 3)) | np.eye(3, dtype=int)[np.arange(60) % 3], "multilabel", "logit"),
        (FLOATS[:, 0], RANDOM.normal(size=60), "regression", "value"),
        (FLOATS[:, :1], RANDOM.integers(0, 50, 60), "regression", "value"),
        (FLOATS, RANDOM.normal(size=(60, 3)), "regression", "value"),
        (RANDOM.integers(0, 3, 60), RANDOM.integers(0, 3, 60), "multiclass", "decision"),
    ],
)
def test_the_task_is_inferred(scores, labels, task, scale):
    plan = make_plan({"y": scores}, labels, EvaluateSettings("none"))
    assert (plan.task, plan.scale) == (task, scale)
    kept = select_scores(scores, plan)
    assert len(kept) == 60
    if plan.classification:
        assert decide(kept, plan).shape[0] == 60
        assert encode(labels, plan).shape[0] == 60


def test_labels_that_fit_no_column_are_refused():
    with pytest.raises(InputError, match="--classes"):
        make_plan({"y": FLOATS}, np.array([1, 9] * 30), EvaluateSettings("none"))
    with pytest.raises(InputError, match="5 values"):
        make_plan({"y": FLOATS}, np.array(list("abcde") * 12), EvaluateSettings("none"))
    with pytest.raises(InputError, match="no output of the model looks like scores"):
        make_plan({"y": RANDOM.normal(size=(60, 2, 2))}, np.zeros(60, int), EvaluateSettings("none"))


def test_minus_one_and_one_are_two_classes_and_the_positive_one_can_be_chosen():
    labels = np.array([-1, 1] * 30)
    plan = make_plan({"y": FLOATS[:, 0]}, labels, EvaluateSettings("none"))
    assert encode(labels, plan).tolist() == [0, 1] * 30
    other = make_plan({"y": FLOATS[:, 0]}, labels, EvaluateSettings("none", positive="-1"))
    same = decide(select_scores(FLOATS[:, 0], plan), plan) == decide(select_scores(FLOATS[:, 0], other), other)
    assert same.all()
    assert (select_scores(FLOATS[:, 0], other) == -FLOATS[:, 0]).all()


def test_the_scores_are_found_among_the_outputs():
    outputs = {
        "hidden": RANDOM.normal(size=(60, 7, 2)),
        "loss": np.zeros(()),
        "digit": RANDOM.integers(0, 3, 60),
        "logits": FLOATS,
    }
    labels = RANDOM.integers(0, 3, 60)
    assert make_plan(outputs, labels, EvaluateSettings("none")).output == "logits"
    assert make_plan(outputs, labels, EvaluateSettings("none", output="digit")).scale == "decision"
    with pytest.raises(InputError, match="no output 'nope'"):
        make_plan(outputs, labels, EvaluateSettings("none", output="nope"))


def test_nan_decides_for_nothing():
    plan = Plan("multiclass", "y", "logit", 3, ("a", "b", "c"), (0, 1, 2))
    scores = np.array([[1, 2, 3], [np.nan, 1, 2]], np.float32)
    assert decide(scores, plan).tolist() == [2, -1]


def test_what_an_example_of_many_places_is_taken_for():
    ids, labels = np.zeros((4, 6, 5), np.float32), np.ones((4, 6), np.int64)
    assert make_plan({"y": ids}, labels, EvaluateSettings("none")).task == "tokens"
    scores = np.zeros((4, 6), np.float32)
    assert make_plan({"hidden": ids, "y": scores}, labels, EvaluateSettings("none")).task == "multilabel"
    assert make_plan({"y": ids}, labels, EvaluateSettings("none", metrics=("a.py:f",))).task == "custom"
    masks = np.zeros((4, 8, 8), np.int64)
    plan = make_plan({"y": np.zeros((4, 3, 2, 2), np.float32)}, masks, EvaluateSettings("none"))
    assert (plan.task, plan.size, plan.columns) == ("segmentation", (8, 8), 3)
    assert make_plan({"y": masks}, masks, EvaluateSettings("none")).scale == "decision"
    with pytest.raises(InputError, match="a label is 7"):
        make_plan({"y": np.zeros((4, 3, 8, 8), np.float32)}, masks + 7, EvaluateSettings("none"))
    with pytest.raises(InputError, match="--task detection: expected data with boxes"):
        make_plan({"y": scores}, labels, EvaluateSettings("none", task="detection"))


def test_vectors_with_a_name_are_embeddings():
    vectors, kinds = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32), np.array([0, 0, 1, 1, 2, 2])
    assert make_plan({"sentence_embedding": vectors}, kinds, EvaluateSettings("none")).task == "embedding"
    assert make_plan({"logits": vectors}, kinds, EvaluateSettings("none")).task == "multiclass"
    assert make_plan({"logits": vectors}, kinds, EvaluateSettings("none", task="embedding")).output == "logits"
