"""Key points."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.metrics import measure
from onnxproof.quality.metrics.points import FALLOFF
from onnxproof.quality.task_plan import make_plan
from onnxproof.request.evaluation import EvaluateSettings

CORNERS = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], np.float32)


def measure_sides(truth, baseline, candidate):
    plan = make_plan({"keypoints": baseline}, truth, EvaluateSettings("none"))
    assert plan.task == "keypoints"
    flat = {side: a.reshape(len(a), -1) for side, a in (("baseline", baseline), ("candidate", candidate))}
    return measure(merge([Shard(0, len(truth), {"labels": truth, **flat})], plan))


def test_points_are_held_against_the_size_of_their_figure():
    truth = np.stack([np.concatenate([CORNERS, [[1], [1], [1], [0]]], axis=1)] * 2)
    moved = np.stack([CORNERS] * 2)
    moved[0, 0] += (3, 0)  # of ten: farther than a tenth
    moved[1, 3] += 50  # is not seen
    measured = measure_sides(truth, np.stack([CORNERS] * 2), moved)
    assert measured.values["baseline"] == {"oks": 1.0, "pck_at_10": 1.0}
    likeness = (np.exp(-(0.3**2) / (2 * FALLOFF**2)) + 2) / 3
    assert measured.values["candidate"]["oks"] == pytest.approx((likeness + 1) / 2)
    assert measured.values["candidate"]["pck_at_10"] == pytest.approx((2 / 3 + 1) / 2)


def test_figures_are_a_set():
    truth = np.stack([[CORNERS, CORNERS + 100, np.full((4, 2), -1.0)]])
    found = np.stack([[CORNERS + 100, CORNERS + 500, CORNERS]]).astype(np.float32)
    measured = measure_sides(truth, found, found[:, ::-1])
    assert measured.values["baseline"] == measured.values["candidate"] == {"oks": 1.0, "pck_at_10": 1.0}
    lost = measure_sides(truth, found, np.where(found == found, 1e4, 0).astype(np.float32))
    assert lost.values["candidate"] == {"oks": 0.0, "pck_at_10": 0.0}


def test_labels_of_another_form_are_refused():
    with pytest.raises(InputError, match="--task keypoints"):
        make_plan({"y": np.zeros((2, 4, 2), np.float32)}, np.zeros(2), EvaluateSettings("none", task="keypoints"))
