"""Task quality in words: the metrics that matter first, and what the flips mean."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.proof.quality import Confusion, MetricInterval, Quality, Rate
from onnxproof.report.quality import tell_headline, tell_lines
from proofs import make_quality

CLEAN = Quality(
    task="multiclass",
    n=2000,
    baseline={"accuracy": 0.5, "brier": 0.1, "own": 2.0},
    candidate={"accuracy": 0.25, "brier": 0.1, "own": 2.0},
    intervals={"accuracy": MetricInterval("wilson", candidate=(0.2, 0.3), difference=(-0.3, -0.2))},
    flip_rate=Rate(0.0, 0.0, 0.0015),
    classes=("a", "b"),
)


def test_the_users_own_metric_leads():
    assert tell_headline(CLEAN) == "2,000 examples, no decision changed, own 2"


def test_columns_are_aligned_and_a_difference_has_its_interval():
    _, what, head, own, accuracy, changed = tell_lines(CLEAN, "PyTorch")
    assert what == "  2,000 examples: multiclass, 2 classes; output holds numbers"
    assert head.split()[0] == "PyTorch"
    assert head.endswith(" difference")
    assert own.endswith("none")
    assert accuracy.split() == ["accuracy", "0.5000", "0.2500", "0.2000–0.3000", "-0.2500", "(-0.3000", "…", "-0.2000)"]
    assert accuracy.index("0.5000") == own.index("2.0000")
    assert changed == "  no decision changed; zero flips in 2,000 examples bound the rate at 0.15%"


def test_flips_that_rounding_does_not_explain_are_named():
    quality = make_quality()
    told = "\n".join(tell_lines(quality, "PyTorch"))
    assert f"{quality.flip_count} decisions changed" in told
    assert f"{quality.flip_count} not by rounding" in told
    assert told.count("    example ") == 2


def test_many_classes_name_the_pairs_that_are_confused_most():
    rows = tuple(tuple(i if j == 0 else 0 for j in range(6)) for i in range(6))
    confused = replace(CLEAN, confusion=Confusion(tuple("abcdef"), rows, rows))
    assert "  most confused: f as a (5), e as a (4), d as a (3)" in tell_lines(confused, "PyTorch")
    assert not any("confused" in line for line in tell_lines(confused, "PyTorch", short=True))
