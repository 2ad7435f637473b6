"""Opinions about quality: each code of OX5xx with its trigger and its near miss; gates and goals."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import InputError, UserError
from onnxproof.policy.quality import check_gates, judge_quality
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.quality import Quality
from onnxproof.request.evaluation import parse_cost, parse_goal
from onnxproof.request.option import Expected
from onnxproof.request.thresholds import QualityPolicy, parse_gate
from quality.scored import binary, codes_of, quality_of

FLOATS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32) * 3


@pytest.mark.parametrize("text", ["recall>0.9", "recall>=2", "min:f1", "max:beauty", "f1>=0.5"])
def test_goals_that_are_none_are_refused(text):
    with pytest.raises(Expected, match="or max:f1"):
        parse_goal(text)


def test_gates_and_costs_are_parsed():
    assert [parse_gate("recall=0.8"), parse_gate("recall[a=b]=0.5")] == [("recall", 0.8), ("recall[a=b]", 0.5)]
    for wrong in ("recall", "=0.8", "recall=high"):
        with pytest.raises(Expected, match="metric=number"):
            parse_gate(wrong)
    with pytest.raises(Expected, match="fn=100"):
        parse_cost("fn=100,missed=3")


def rare_class(found_share, n=2000):
    """2 % positives of which a share is found, and no false alarm."""
    labels = np.zeros(n, np.int64)
    labels[: n // 50] = 1
    logits = np.full(n, -3.0, np.float32) + np.random.default_rng(0).normal(0, 0.1, n).astype(np.float32)
    logits[: round(n // 50 * found_share)] = 2.0
    return labels, logits


def test_ox505_a_rare_class_that_is_missed_blocks_whatever_the_accuracy():
    labels, logits = rare_class(0.12)
    quality = quality_of(labels, logits)
    assert quality.candidate["accuracy"] > 0.98
    found = codes_of(quality)
    assert found["OX505"].severity == "block"
    assert "OX512" in found
    near = codes_of(quality_of(*rare_class(0.7)))
    assert "OX505" not in near
    assert "OX505" not in codes_of(quality, minimum={"recall": 0.1}), "the user says what is enough"


def test_ox504_and_ox509_gates():
    labels, logits = binary(400, 0.3)
    quality = quality_of(labels, logits)
    recall = quality.candidate["recall"]
    assert codes_of(quality, minimum={"recall": recall + 0.01})["OX504"].severity == "block"
    near = codes_of(quality, minimum={"recall": recall - 0.001})
    assert "OX504" not in near
    assert near["OX509"].severity == "note"
    assert not {"OX504", "OX509"} & codes_of(quality, minimum={"recall": recall - 0.3}).keys()
    assert "OX504" in codes_of(quality, minimum={"recall[0]": 0.9999})
    assert "OX504" in codes_of(quality, maximum={"log_loss": 0.0001})
    with pytest.raises(UserError, match="no such metric"):
        check_gates(QualityPolicy(minimum={"beauty": 1}), quality)
    with pytest.raises(UserError, match="needs an evaluation"):
        check_gates(QualityPolicy(minimum={"recall": 1}), None)


def test_ox509_more_examples_settle_a_gate():
    def recalled(n):
        labels = np.arange(2 * n) % 2
        logits = np.where(labels == 1, np.where(np.arange(2 * n) // 2 % 20 < 17, 2.0, -2.0), -3.0).astype(np.float32)
        return codes_of(quality_of(labels, logits), minimum={"recall": 0.8})

    assert "OX509" in recalled(20)
    assert not {"OX504", "OX509"} & recalled(2000).keys()


def test_ox506_low_accuracy():
    labels, logits = binary(1000, noise=3.0)
    quality = quality_of(labels, logits)
    assert quality.candidate["accuracy"] < 0.8
    assert codes_of(quality)["OX506"].severity == "review"
    assert "OX506" not in codes_of(quality, minimum={"accuracy": 0.5})
    assert "OX506" not in codes_of(quality_of(*binary(1000)))


def test_ox507_a_drop():
    labels, logits = binary(1000, noise=0.7)
    worse = logits.copy()
    wrong = np.flatnonzero((logits > 0) == (labels == 1))[:40]
    worse[wrong] *= -1
    assert codes_of(quality_of(labels, logits, worse))["OX507"].severity == "review"
    assert codes_of(quality_of(labels, logits, worse), max_drop={"accuracy": 0.01})["OX507"].severity == "block"
    assert "OX507" not in codes_of(quality_of(labels, logits, worse), max_drop={"accuracy": 0.05})
    few = quality_of(labels[:50], logits[:50], np.where(np.arange(50) == wrong[0], -logits[:50], logits[:50]))
    assert "OX507" not in codes_of(few), "one of fifty is chance"


def test_ox508_too_few_examples():
    labels, logits = binary(100)
    found = codes_of(quality_of(labels, logits))["OX508"]
    assert "about 268 examples" in found.message or "about 27" in found.message
    assert quality_of(labels, logits).flip_rate.high == pytest.approx(0.0295, abs=1e-4)
    assert "OX508" not in codes_of(quality_of(*binary(1000)))


def test_ox510_and_ox511_thresholds():
    labels, logits = binary(1000, 0.3)
    moved = codes_of(quality_of(labels, logits, logits - 1.0, goals=("recall>=0.95",)))
    assert moved["OX510"].severity == "review"
    jitter = logits + np.random.default_rng(0).normal(0, 1e-6, 1000).astype(np.float32)
    near = quality_of(labels, logits, jitter, goals=("recall>=0.95",))
    assert "OX510" not in codes_of(near)
    assert abs(near.thresholds.goals[0].moved) < 1e-4
    hopeless = np.where(np.arange(1000) == 0, 50.0, logits).astype(np.float32)
    labels[0] = 0
    assert codes_of(quality_of(labels, hopeless, goals=("precision>=1.0",)))["OX511"].severity == "review"
    assert "OX511" not in codes_of(quality_of(labels, hopeless, goals=("precision>=0.6",)))
    with pytest.raises(InputError, match="--goal"):
        quality_of(np.arange(60) % 3, FLOATS, goals=("recall>=0.9",))


def test_ox512_and_ox513_balance():
    labels, logits = binary(1000, 0.3)
    assert not {"OX512", "OX513"} & codes_of(quality_of(labels, logits)).keys()
    assert "OX512" in codes_of(quality_of(*binary(2000, 0.01)))
    assert codes_of(quality_of(np.arange(60) % 2, FLOATS))["OX513"].severity == "review"
    assert "OX513" not in codes_of(quality_of(np.arange(60) % 3, FLOATS))


def test_quality_is_judged_again_from_json():
    quality = quality_of(*binary(500, 0.3), goals=("max:f1",), cost="fn=10,fp=1")
    assert [goal.goal for goal in quality.thresholds.goals] == ["max:f1", "cost fn=10,fp=1"]
    future = decode({**to_plain(quality), "from_the_future": 1}, Quality)
    assert {f.code for f in judge_quality(future, QualityPolicy())} == set(codes_of(quality))
