"""What the page holds: the worst first, within the room that there is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onnxproof.findings import found
from proofs import full_proof, make_proof, make_quality

pytest.importorskip("altair", reason="the report's extra is not installed")

from onnxproof.proof.quality import Confusion, MetricInterval, Quality
from onnxproof.proof.trials import Latent, ModuleTrials, Trials
from onnxproof.report import page, points, quality_page
from onnxproof.report.charts import Content


def test_the_worst_cases_stay_where_there_is_little_room():
    rows = points.list_judged(make_proof(cases=200, wrong=5))
    packed = page.pack_cases(rows, 1000)
    assert packed["total"] == 200
    assert 5 < len(packed["rows"]) < 200
    assert len(json.dumps(packed, separators=(",", ":"))) < 1200
    assert [points.STATES[row[2]] for row in packed["rows"][:6]] == ["block"] * 5 + ["agrees"]


def test_culprits_stay_on_the_path_and_the_path_in_order():
    packed = page.pack_steps(make_proof(nodes=500), 2000)
    steps = [row[0] for row in packed["rows"]]
    assert 250 in steps
    assert steps == sorted(steps)
    assert packed["total"] == 500


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (("review",), "Look before you ship: 1 thing to look at."),
        (("block", "block"), "Do not ship this file: 2 findings against it."),
        (("block", "review"), "Do not ship this file: 1 finding against it, and 1 more to look at."),
    ],
)
def test_the_lead_counts_what_gates(codes, said):
    observed = tuple(found("OX102", str(i), severity=severity) for i, severity in enumerate(codes))
    assert page.make_page(make_proof(observed=observed)).context["lead"] == said


def test_only_asked_findings_are_shown_and_counted():
    observed = tuple(found("OX306", str(i)) for i in range(7))
    context = page.make_page(make_proof(observed=observed), findings=4).context
    assert len(context["findings"]) == 4
    assert sum(count for _, count in context["severities"]) == 4


def test_every_figure_has_its_chart():
    content = page.make_page(full_proof())
    figures = [*content.context["parity"], *content.context["latency"], *content.context["quality"]["curve"]]
    assert {figure.key for figure in figures} < set(content.specs)
    assert all(spec["width"] == "container" for spec in content.specs.values())


def test_metrics_have_both_sides_an_interval_and_the_difference():
    quality = Quality(
        baseline={"f1": 0.5, "own_loss": 2000.0},
        candidate={"f1": 0.25, "r2": float("nan")},
        intervals={"f1": MetricInterval("wilson", candidate=(0.2, 0.3))},
    )
    rows = quality_page.make_section(replace(make_proof(), quality=quality), Content())["metrics"]
    assert [tuple(row.values()) for row in rows] == [
        ("f1", "0.5000", "0.2500", "0.2000–0.3000", "-0.2500"),
        ("own loss", "2,000", "–", "", "–"),
        ("r2", "–", "–", "", "–"),
    ]


def test_many_classes_are_a_chart_with_the_pairs_that_are_confused_most():
    rows = tuple(tuple(9 if i == j else int(j == 0) * i for j in range(15)) for i in range(15))
    proof = replace(make_proof(), quality=Quality(confusion=Confusion(tuple("abcdefghijklmno"), rows, rows)))
    made = quality_page.make_section(proof, Content())
    assert made["matrices"] == []
    first = made["confusions"][0]
    assert first.rows[0]["true"] == "o"
    assert "105 examples off the diagonal, in 14 pairs" in first.caption
    small = quality_page.make_section(replace(proof, quality=make_quality(50)), Content())
    assert [side for side, _ in small["matrices"]] == ["baseline", "candidate"]


def test_trials_are_told_by_module_the_untried_first():
    tried = Trials(5, 3, 40, "no clean cut", (), (ModuleTrials("body", 2, 2, 30), ModuleTrials("", 3, 1, 10, uncut=1)))
    told = page.make_page(replace(full_proof(), trials=tried)).context["trials"]
    assert [row[0] for row in told["rows"]] == ["the model itself", "body"]
    assert [row[-1] for row in told["rows"]] == ["1 without a clean cut, 1 for lack of work", "–"]
    assert "every one agreed" not in told["told"]


@pytest.mark.parametrize("latent", [(), (Latent("a", "b", "Clip", "y", "normal", True, 6.0, 7.0),)])
def test_all_agreed_only_where_all_did(latent):
    tried = Trials(2, 2, 30, None, latent, (ModuleTrials("body", 2, 2, 30),))
    told = page.make_page(replace(full_proof(), trials=tried)).context["trials"]["told"]
    assert ("every one agreed on its own edges" in told) is not bool(latent)
