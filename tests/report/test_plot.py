"""Charts of a proof, one at a time: each is valid, and what a proof does not hold is said."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onnxproof.errors import UserError
from onnxproof.report.plot import Plot
from proofs import full_proof, make_proof

alt = pytest.importorskip("altair", reason="the report's extra is not installed")


@pytest.fixture(scope="module")
def proof():
    return full_proof()


@pytest.mark.parametrize(
    "name",
    [
        "errors",
        "heatmap",
        "path",
        "latency",
        "latency_by_batch",
        "speedup",
        "confusion",
        "precision_recall",
        "calibration",
    ],
)
def test_every_chart_is_a_valid_altair_chart(proof, name):
    chart = getattr(Plot(proof), name)()
    assert isinstance(chart, (alt.Chart, alt.LayerChart))
    spec = chart.to_dict(validate=True)
    assert spec["description"]
    assert '"values": [{' in json.dumps(spec)


def test_charts_take_a_choice(proof):
    assert Plot(proof).confusion("baseline").to_dict() != Plot(proof).confusion("candidate").to_dict()
    assert Plot(proof).latency(8).to_dict() != Plot(proof).latency(1).to_dict()
    with pytest.raises(UserError, match="was not located"):
        Plot(proof).path("no such case")


def test_what_is_not_there_is_said():
    with pytest.raises(UserError, match="run `bench`"):
        Plot(make_proof()).latency()
    with pytest.raises(UserError, match="run `evaluate`"):
        Plot(make_proof()).confusion()


def test_latency_without_single_times_draws_medians(proof):
    runs = tuple(replace(run, samples=()) for run in proof.latency.runs)
    chart = Plot(replace(proof, latency=replace(proof.latency, runs=runs))).latency()
    assert "batch" in chart.to_dict()["description"]


def test_another_case_has_another_path(proof):
    (case,) = proof.blame
    assert Plot(proof).path(case).to_dict() == Plot(proof).path().to_dict()
    steps = replace(proof.blame[case], path=proof.blame[case].path[:3])
    other = replace(proof, blame={**proof.blame, "other": steps})
    assert Plot(other).path("other").to_dict() != Plot(other).path(case).to_dict()
