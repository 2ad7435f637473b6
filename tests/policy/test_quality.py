"""Facts about a data set become findings: what is said about NaN, flips, scores, gates and drops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.errors import UserError
from onnxproof.policy.quality import check_gates, is_imbalanced, judge_quality
from onnxproof.proof.quality import (
    ClassFacts,
    Equivalence,
    FarExample,
    Flip,
    McNemar,
    MetricInterval,
    Quality,
    ScoreDifference,
    Unanswered,
)
from onnxproof.proof.quality import Tests as Significance
from onnxproof.request.thresholds import QualityPolicy

GOOD = Quality(task="regression", n=100)


def told(quality, **policy):
    return [(f.code, f.severity, f.message) for f in judge_quality(quality, QualityPolicy(**policy), "PyTorch")]


def test_nan_on_one_side_is_worse_than_on_both():
    both = replace(GOOD, unanswered=Unanswered(2, 2, 2))
    assert told(both) == [("OX516", "review", "both sides answer NaN for 2 of 100 examples, which are in no metric")]
    ((code, severity, message),) = told(replace(GOOD, unanswered=Unanswered(0, 2, 0, (7,))))
    assert (code, severity) == ("OX516", "block")
    said = "onnxruntime answers NaN for 2 of 100 examples and PyTorch for 0, the first is row 7; they are in no metric"
    assert message == said
    assert told(GOOD) == []


def flipped(*explained, count=None):
    flips = tuple(Flip(f"e{i}", i, 0, 0, None, margin=0.25, explained=one) for i, one in enumerate(explained))
    return replace(GOOD, flips=flips, flip_count=count or len(flips))


def test_decisions_that_changed():
    ((code, _, message),) = told(flipped(True, False))
    assert code == "OX502"
    assert message == (
        "2 of 100 decisions changed, 1 not by rounding: example e1 is 0 in PyTorch and nothing (NaN) in onnxruntime (margin 0.25)"
    )
    assert "1 of 2 that were examined not by rounding" in told(flipped(True, False, count=5))[0][2]
    ((code, _, message),) = told(flipped(True, None))
    assert code == "OX503"
    assert message.endswith("decisions changed where the margin is within rounding (1 of them were examined)")


def test_scores_beyond_rounding_are_told_where_no_decision_shows_it():
    far = (FarExample(3, "e3", 0.5, 20.0), FarExample(4, "e4", 0.1, 0.5))
    quality = replace(GOOD, score_difference=ScoreDifference(0.5, 0.1, far))
    assert [one[0] for one in told(quality)] == ["OX517"]
    assert "example e3 by 0.5, 20 times what rounding may do" in told(quality)[0][2]
    shown = replace(quality, flips=flipped(False).flips, flip_count=1)
    assert [one[0] for one in told(shown)] == ["OX502"]
    assert told(replace(GOOD, score_difference=ScoreDifference(0.5, 0.1, far[1:]))) == []


ERRORS = replace(GOOD, baseline={"mae": 0.4, "r2": 0.9}, candidate={"mae": 0.5, "r2": 0.9})


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"maximum": {"mae": 0.45}}, "mae is 0.5 (PyTorch: 0.4), and must be at most 0.45"),
        ({"minimum": {"r2": 0.95}}, "r2 is 0.9 (PyTorch: 0.9), and must be at least 0.95"),
        ({"maximum": {"mae": 0.5}}, None),
        ({"minimum": {"r2": 0.9}}, None),
        ({"minimum": {"r2": 0.9}, "maximum": {"unknown": 1.0}}, None),
    ],
)
def test_gates(policy, said):
    gated = [message for code, _, message in told(ERRORS, **policy) if code == "OX504"]
    assert gated == ([said] if said else [])


def test_a_gate_below_which_the_interval_reaches():
    unsure = replace(ERRORS, intervals={"r2": MetricInterval("bootstrap", candidate=(0.7, 0.95))})
    assert ("OX509", "r2 is 0.9 and meets 0.8; its interval reaches down to 0.7") in [
        (code, message) for code, _, message in told(unsure, minimum={"r2": 0.8})
    ]
    assert told(unsure, minimum={"r2": 0.7}) == told(unsure, maximum={"r2": 0.95}) == []


def test_a_drop_that_is_promised_blocks_and_one_beyond_chance_is_to_be_reviewed():
    surely = replace(ERRORS, intervals={"mae": MetricInterval("bootstrap", difference=(0.05, 0.15))})
    message = "mae is 0.4 in PyTorch and 0.5 in onnxruntime: worse by 0.1, allowed is "
    assert told(ERRORS, max_drop={"mae": 0.05}) == [("OX507", "block", f"{message}0.05")]
    assert told(surely) == [("OX507", "review", f"{message}0.004")]
    assert told(ERRORS) == told(surely, max_drop={"mae": 0.2}) == told(surely, default_drop=0.5) == []


def test_accuracy_drops_surely_where_mcnemar_says_so():
    worse = replace(GOOD, baseline={"accuracy": 0.95}, candidate={"accuracy": 0.9})
    sure, unsure = (replace(worse, tests=Significance(mcnemar=McNemar(0, 5, p))) for p in (0.01, 0.2))
    assert [one[0] for one in told(sure)] == ["OX507"]
    assert told(unsure) == []


@pytest.mark.parametrize(
    ("needed", "more"),
    [(12345, "about 12,345 examples would settle it"), (None, "no number of examples with this difference would")],
)
def test_too_few_examples(needed, more):
    test = Equivalence(0.01, 0.0, -0.02, 0.02, 0.95, "tango", False, needed)
    ((code, _, message),) = told(replace(GOOD, tests=Significance(equivalence=test)))
    assert code == "OX508"
    assert message.endswith(f"the difference lies between -0.0200 and +0.0200; {more}")
    assert told(replace(GOOD, tests=Significance(equivalence=replace(test, within=True)))) == []


def test_the_worst_of_many_missed_classes_speak_and_the_last_counts_the_others():
    recalls = {f"c{i}": ClassFacts(5, {}, {"recall": i / 100}) for i in range(6)}
    classes = {"common": ClassFacts(10000, {}, {"recall": 1.0}), **recalls}
    quality = replace(GOOD, task="multiclass", per_class=classes, candidate={"accuracy": 0.99})
    missed = [message for code, _, message in told(quality, most_rare=2) if code == "OX505"]
    assert [message.split()[3] for message in missed] == ["c0", "c1"]
    assert ["more classes" in message for message in missed] == [False, True]
    assert missed[1].endswith("; 4 more classes are missed like it")
    assert [one for one in told(quality, most_rare=6) if "more classes" in one[2]] == []


def test_a_gate_on_what_was_not_measured_is_refused():
    check_gates(QualityPolicy(), None)
    check_gates(QualityPolicy(minimum={"r2": 0.5}), ERRORS)
    with pytest.raises(UserError, match="--max-drop needs an evaluation"):
        check_gates(QualityPolicy(max_drop={"r2": 0.5}), None)
    with pytest.raises(UserError, match="--max f1: no such metric was measured; there are 'mae', 'r2'"):
        check_gates(QualityPolicy(maximum={"mae": 0.5, "f1": 0.5}), ERRORS)


def test_accuracy_does_not_lead_where_one_class_is_nearly_all():
    few = {"no": ClassFacts(99, {}, {}), "yes": ClassFacts(1, {}, {})}
    assert is_imbalanced(replace(GOOD, task="binary", per_class=few))
    assert not is_imbalanced(replace(GOOD, task="multiclass", per_class=few))
    assert not is_imbalanced(replace(GOOD, task="binary", per_class=dict.fromkeys(few, few["no"])))
