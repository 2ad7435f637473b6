"""Charts of rows: fields and formats, what is drawn where, no name of the model in an expression."""

from __future__ import annotations

import math

import pytest

from onnxproof.proof.latency import Run, Speedup
from proofs import full_proof

pytest.importorskip("altair", reason="the report's extra is not installed")

from onnxproof.report import charts, points


def test_a_tip_has_its_format_and_its_own_name():
    plain, formed = (
        tip.to_dict(context={"data": None}) for tip in charts._make_tips("case:N error:Q.3~e", error="apart")
    )
    assert plain == {"field": "case", "type": "nominal"}
    assert formed == {"field": "error", "type": "quantitative", "format": ".3~e", "title": "apart"}


def test_the_one_to_beat_is_grey_and_the_others_differ():
    rows = charts._make_rows([Run(name, 1) for name in ("pytorch", "onnxruntime", "other")])
    color = charts._color_sides(rows, "contender").to_dict(context={"data": None})
    assert color["scale"]["domain"] == ["pytorch", "onnxruntime", "other"]
    assert color["scale"]["range"] == [charts.SIDE_COLORS[0], charts.ACCENT, "#c98a00"]


def test_what_is_not_finite_is_drawn_above_the_rest():
    steps = [
        {"step": i, "node": "n", "op": "Add", "module": None, "source": "", "culprit": i == 1}
        | dict(zip(charts.WAYS, pair, strict=True))
        for i, pair in enumerate([(0.0, 1e-4), (math.nan, 0.5), (1e300, 1e300)])
    ]
    inherited, introduced, circled, _ = (
        layer["data"]["values"] for layer in charts.draw_path(steps).to_dict()["layer"]
    )
    assert [row["y"] for row in inherited] == [1e-9, 50.0, 50.0]
    assert [row["y"] for row in introduced] == [1e-4, 0.5, 50.0]
    assert [row["step"] for row in circled] == [1]


def test_the_tail_is_drawn_only_where_it_is_known():
    proof = full_proof()
    known = charts.draw_latency_by_batch(points.choose_timed(proof)).to_dict()
    assert len(known["layer"]) == 2
    assert len(charts.draw_latency_by_batch([Run("x", 1)]).to_dict()["layer"]) == 1


def places(value, text, path=()):
    """Where a text occurs in a specification."""
    if isinstance(value, dict):
        return [place for key, item in value.items() for place in places(item, text, (*path, key))]
    if isinstance(value, list):
        return [place for item in value for place in places(item, text, path)]
    return [path] if text in str(value) else []


def test_names_of_the_model_are_values_only():
    nasty = "datum.x'];alert(5);['"
    spec = charts.draw_speedup([Speedup(1, nasty, 2.0, 1.5, 2.5)]).to_dict()
    assert {path[-3:] for path in places(spec, nasty)} == {
        ("data", "values", "contender"),
        ("color", "scale", "domain"),
    }
