"""Orders of candidates."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.metrics import measure
from onnxproof.quality.task_plan import make_plan
from onnxproof.request.evaluation import EvaluateSettings

GRADES = np.array([[3, 0, 1, -1], [0, 0, 1, 2], [0, 0, 0, 0]])
RIGHT = np.array([[0.9, 0.1, 0.5, 5.0], [0.1, 0.2, 0.3, 0.9], [0.1, 0.2, 0.3, 0.4]], np.float32)
WRONG = np.array([[0.1, 0.9, 0.5, 5.0], [0.1, 0.2, 0.3, 0.9], [0.1, 0.2, 0.3, 0.4]], np.float32)


def test_orders_are_judged_query_by_query():
    plan = make_plan({"relevance": RIGHT}, GRADES, EvaluateSettings("none"))
    assert plan.task == "ranking"
    assert make_plan({"y": RIGHT}, GRADES, EvaluateSettings("none")).task != "ranking"
    assert make_plan({"y": RIGHT}, GRADES, EvaluateSettings("none", task="ranking")).output == "y"
    columns = {"labels": GRADES, "baseline": RIGHT, "candidate": WRONG}
    measured = measure(merge([Shard(0, 3, columns)], plan))
    assert (
        measured.values["baseline"]["ndcg_at_10"] == 1.0
    )  # without the query that nothing answers, and the place that is empty
    discounts = 1 / np.log2([2, 3, 4])
    first = (1 * discounts[1] + 7 * discounts[2]) / (7 * discounts[0] + 1 * discounts[1])
    assert measured.values["candidate"]["ndcg_at_10"] == pytest.approx((first + 1) / 2)
    assert measured.values["candidate"]["mean_reciprocal_rank"] == pytest.approx((1 / 2 + 1) / 2)
    assert measured.values["candidate"]["same_best"] == pytest.approx(2 / 3)
    assert measured.intervals["ndcg_at_10"]["difference"][0] < 0


def test_labels_that_grade_nothing_are_refused():
    with pytest.raises(InputError, match="--task ranking: expected a whole number"):
        make_plan({"y": RIGHT}, np.zeros(3, np.int64), EvaluateSettings("none", task="ranking"))
