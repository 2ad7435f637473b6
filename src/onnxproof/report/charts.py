"""Rows → altair charts: the same for the page and for a notebook. Who draws a chart has a row for it.

Names that come from the model are always values of rows, never names of fields or parts of expressions, so that nothing in
them means anything to the chart.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import cycle
from string import Template
from typing import Any

import altair as alt

from onnxproof.proof.latency import Run, Speedup
from onnxproof.proof.proof import Proof
from onnxproof.proof.quantization import Quantization
from onnxproof.report import points
from onnxproof.report.groups import sort_naturally
from onnxproof.report.points import FAINT, Judged, Row
from onnxproof.report.wording import BORN, shorten

Chart = alt.Chart | alt.LayerChart

# Middle tones, so that they can be told from a white and from a dark page (3:1 and more on both).
COLORS = {"agrees": "#2da44e", "note": "#7d8fa3", "review": "#c98a00", "block": "#e5534b", "rejected": "#a9a9a9"}
# For areas that carry dark text, on either page.
CELLS = {"agrees": "#8fd0a2", "note": "#b4bfca", "review": "#ecc060", "block": "#f2857e", "rejected": "#d4d4d4"}
INK = "#1f2328"
SHAPES = {"agrees": "circle", "note": "diamond", "review": "triangle-up", "block": "square", "rejected": "cross"}
SIDE_COLORS = ["#7d8fa3", "#3b82d0"]
ACCENT = "#3b82d0"
TO_BEAT = ("pytorch", "baseline")
WAYS = ["inherited", "introduced"]


@dataclass(frozen=True)
class Figure:
    """A chart with what it says in words and in a table."""

    key: str
    title: str
    caption: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """Head → the field of a row that stands below it."""
    rows: Sequence[Any] = ()
    more: int = 0
    """Rows that the table leaves out."""
    min_width: int = 0
    """Pixels below which the chart scrolls inside its frame."""


@dataclass
class Content:
    """For the template (`context`) and for the page's script (`data`)."""

    context: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    specs: dict[str, Any] = field(default_factory=dict)

    def draw(self, figure: Figure, chart: Callable[..., Chart], rows: Sequence[Any], *options: Any) -> list[Figure]:
        """Keep the chart of these rows under its figure's key; nothing where there is no row."""
        if rows:
            self.specs[figure.key] = chart(rows, *options).properties(width="container").to_dict(validate=False)
        return [figure] * bool(rows)


def make_theme(dark: bool) -> dict[str, Any]:
    """The look of axes, texts and grids on a light and on a dark page.

    A chart's description is read out (`aria`), not each of its hundreds of points.
    """
    text, muted, grid = ("#e6e8ea", "#a3abb3", "#2c3238") if dark else ("#1f2328", "#59636e", "#e4e7ea")
    look = Template((files(__package__) / "templates" / "theme.json").read_text(encoding="utf-8"))
    made: dict[str, Any] = json.loads(look.substitute(text=text, muted=muted, grid=grid))
    return made


def _chart(rows: Sequence[Row]) -> alt.Chart:
    """A chart of rows; four digits are more than an eye can tell apart."""
    return alt.Chart(alt.Data(values=[{key: _round(value) for key, value in row.items()} for row in rows]))


def _round(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) and math.isfinite(value) else value


def _make_rows(records: Sequence[Run | Speedup], *names: str) -> list[Row]:
    return [{name: getattr(record, name) for name in ("contender", "batch", *names)} for record in records]


def _layer(*layers: alt.Chart, about: str, width: int = 620, height: int = 300) -> alt.LayerChart:
    """One chart, with a description to be read out."""
    return alt.layer(*layers).properties(width=width, height=height, description=about)


def _make_tips(fields: str, **titles: str) -> list[alt.Tooltip]:
    """Fields with a format after the type (`error:Q.3~e`), and what those are called that have another name."""
    parts = [re.split(r"(?<=:[A-Z])", field) for field in fields.split()]
    return [
        alt.Tooltip(field, format=form or alt.Undefined, title=titles.get(field[:-2]) or alt.Undefined)
        for field, form in parts
    ]


def _make_legend(title: str | None) -> alt.Legend:
    return alt.Legend(title=title, orient="top")


def _make_log_axis(axis: Any, field: str, title: str, **scale: Any) -> Any:
    """An axis of powers of ten."""
    return axis(field, title=title).scale(type="log", **scale).axis(format="~e", tickCount=6)


def _encode_state(kind: Any, rows: Sequence[Row], looks: Mapping[str, str], title: str) -> Any:
    """A color or a shape for each state that is there."""
    states = [state for state in points.STATES if any(row["state"] == state for row in rows)]
    return kind("state:N", legend=_make_legend(title)).scale(domain=states, range=[looks[state] for state in states])


def _color_sides(rows: Sequence[Row], field: str) -> alt.Color:
    """A color for each contender or side: grey for the one to beat, blue for the candidate, then others."""
    names = list(dict.fromkeys(row[field] for row in rows))
    palette = cycle([ACCENT, "#c98a00", "#8a63d2", "#2da44e", "#e5534b"])
    shown = [SIDE_COLORS[0] if name in TO_BEAT else next(palette) for name in names]
    return alt.Color(f"{field}:N", legend=_make_legend(None)).scale(domain=names, range=shown)


def draw_errors(shown: Sequence[Row], rows: Sequence[Judged], proof: Proof) -> Chart:
    """Error against magnitude (`points.error_points`) with the band of rounding and the line of the contract."""
    floor = max(min([row["error"] for row in shown if row["error"] > 0] or [1e-9]) / 3, FAINT)
    least = max(min([row["magnitude"] for row in shown if row["magnitude"] > 0] or [1e-3]), FAINT)
    drawn = [{**row, "y": max(row["error"], floor), "x": max(row["magnitude"], least)} for row in shown]
    scatter = _chart(drawn).mark_point(filled=True, size=64, opacity=0.8)
    title = "verdict of the case"
    return _layer(
        *_draw_background(proof, rows, drawn, floor),
        scatter.encode(
            _make_log_axis(alt.X, "x:Q", f"magnitude of the element, |{proof.counterpart}|"),
            _make_log_axis(alt.Y, "y:Q", "absolute difference"),
            _encode_state(alt.Color, drawn, COLORS, title),
            _encode_state(alt.Shape, drawn, SHAPES, title),
            tooltip=_make_tips(
                "case:N output:N error:Q.3~e magnitude:Q.3~e noise_ratio:Q.3~g count:Q",
                **{"error": "difference", "noise_ratio": "noise ratio", "count": "points here"},
            ),
        ),
        about="Scatter chart: absolute difference against magnitude, with the noise band and the tolerance line.",
    )


def _draw_background(proof: Proof, rows: Sequence[Judged], drawn: Sequence[Row], floor: float) -> Iterator[alt.Chart]:
    """The band of rounding and the contract, over the range of magnitudes that were seen."""
    band = [{**row, "low": max(row["low"], floor)} for row in points.draw_noise_band(rows, proof.policy.noise)]
    band = [row for row in band if row["high"] > floor]
    if band:
        area = _chart(band).mark_area(color=ACCENT, opacity=0.16, interpolate="monotone")
        yield area.encode(x="magnitude:Q", y=alt.Y("low:Q", title="absolute difference"), y2="high:Q")
    low, high = min(row["x"] for row in drawn), max(row["x"] for row in drawn)
    line = points.draw_contract_line(proof, low / 1.5, high * 1.5)
    if line:
        yield _chart(line).mark_line(style="contract").encode(x="magnitude:Q", y="limit:Q", detail="line:N")


def draw_heatmap(cells: Sequence[Row]) -> Chart:
    """Sizes × value profiles (`points.heat_cells`), colored by what the case says, with the noise ratio in the cell."""
    drawn = [{**cell, "text": _label_cell(cell)} for cell in cells]
    sizes = sorted({cell["sizes"] for cell in drawn}, key=sort_naturally)
    base = _chart(drawn).encode(
        x=alt.X("profile:N", title="values", sort=None).axis(labelAngle=-45).scale(paddingInner=0.04),
        y=alt.Y("sizes:N", title="sizes", sort=sizes).scale(paddingInner=0.08),
    )
    titles = {"profile": "values", "state": "verdict", "max_abs": "largest difference", "noise_ratio": "noise ratio"}
    squares = base.mark_rect(cornerRadius=2).encode(
        color=_encode_state(alt.Color, drawn, CELLS, "worst of the cell"),
        tooltip=_make_tips("sizes:N profile:N state:N max_abs:Q.3~e noise_ratio:Q.3~g cases:Q", **titles),
    )
    texts = base.mark_text(color=INK, fontSize=10).encode(text="text:N")
    few = len({cell["profile"] for cell in drawn}) <= 24
    about = "Heat map: sizes against value profiles; the color is the worst verdict, the number the noise ratio."
    return _layer(squares, *[texts] * few, about=about, height=max(60, 26 * len(sizes)))


def _label_cell(cell: Row) -> str:
    ratio = cell["noise_ratio"]
    if cell["nonfinite"] or ratio is None:
        return "NaN" if cell["nonfinite"] else ""
    return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e") if ratio >= 1000 else f"{ratio:.2g}"


def draw_path(steps: Sequence[Row]) -> Chart:
    """The error on its way through the graph (`points.path_steps`), node by node, with the culprits marked."""
    steps = [
        {**s, **{key: shorten(s[key] or "", points.NAMED) for key in ("node", "op", "module", "source")}}
        for s in points.thin_steps(steps)
    ]
    # NaN and infinity are drawn above everything that is finite.
    floor, ceiling = 1e-9, 100 * max([s[what] for s in steps for what in WAYS if s[what] < BORN] + [1e-3])
    inherited, introduced = (
        [{**s, "what": what, "y": _clamp(s[what], floor, ceiling)} for s in steps] for what in WAYS
    )
    culprits = [row for row in introduced if row["culprit"]]
    highest = 20 * max(row["y"] for row in [*inherited, *introduced])
    x = alt.X("step:Q", title="node on the way").axis(tickMinStep=1, format="d").scale(nice=False, padding=24)
    y = _make_log_axis(alt.Y, "y:Q", "error, relative to the value's scale", domain=[floor, highest])
    color = alt.Color("what:N", legend=_make_legend(None)).scale(domain=WAYS, range=SIDE_COLORS)
    tips = _make_tips("node:N op:N module:N introduced:Q.3~e inherited:Q.3~e source:N", op="operator")
    circles = _chart(culprits).mark_point(size=260, strokeWidth=3, color=COLORS["block"], shape="circle", filled=False)
    labels = _chart(culprits[:6]).mark_text(dy=-18, color=COLORS["block"], fontWeight=600)
    return _layer(
        _chart(inherited).mark_line(interpolate="step-after").encode(x, y, color, tooltip=tips),
        _chart(introduced).mark_point(filled=True, size=40).encode(x, y, color, tooltip=tips),
        circles.encode(x, y, tooltip=tips),
        labels.encode(x, y, text="op:N"),
        about="Line chart: the error each node inherits and introduces; circles mark the culprits.",
    )


def _clamp(value: float, floor: float, ceiling: float) -> float:
    return ceiling if math.isnan(value) else min(max(value, floor), ceiling)


def draw_latency(shown: Sequence[Row]) -> Chart:
    """How the times are spread at one batch (`points.distributions`)."""
    bars = _chart(shown).mark_bar(opacity=0.65, binSpacing=0)
    chart = bars.encode(
        x=alt.X("start:Q", title="milliseconds for a call").scale(zero=False),
        x2="end:Q",
        y=alt.Y("share:Q", title="share of the calls", stack=None).axis(format="%"),
        y2="floor:Q",
        color=_color_sides(shown, "contender"),
        tooltip=_make_tips(
            "contender:N start:Q.3~g end:Q.3~g count:Q", start="from (ms)", end="to (ms)", count="calls"
        ),
    )
    return _layer(chart, about="Histogram of the time of a call for each contender.")


def draw_speedup(speedups: Sequence[Speedup]) -> Chart:
    """How many times faster than PyTorch at each batch, with the interval; 1 is even."""
    rows = _make_rows(speedups, "ratio", "low", "high")
    base = _chart(rows).encode(alt.X("batch:O", title="batch").axis(labelAngle=0), _color_sides(rows, "contender"))
    return _layer(
        _chart([{"even": 1}]).mark_rule(style="even").encode(y="even:Q"),
        base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=90).encode(
            y=alt.Y("ratio:Q", title="times faster").scale(zero=True),
            tooltip=_make_tips("contender:N batch:O ratio:Q.3~g low:Q.3~g high:Q.3~g"),
        ),
        about="Speed-up at each batch with its interval; the dashed line is even.",
    )


def draw_latency_by_batch(runs: Sequence[Run]) -> Chart:
    """The median against the batch, with p95 where it is known."""
    rows = _make_rows(runs, "p50_ms", "p95_ms", "throughput")
    base = _chart(rows).encode(alt.X("batch:O", title="batch").axis(labelAngle=0), _color_sides(rows, "contender"))
    tails = base.mark_rule(strokeWidth=2, opacity=0.5).encode(y="p50_ms:Q", y2="p95_ms:Q")
    lines = base.mark_line(point={"size": 60}).encode(
        y=alt.Y("p50_ms:Q", title="milliseconds, p50 up to p95").scale(type="log"),
        tooltip=_make_tips("contender:N batch:O p50_ms:Q.4~g p95_ms:Q.4~g throughput:Q.4~g"),
    )
    known = all(run.p95_ms is not None for run in runs)
    return _layer(*[tails] * known, lines, about="Median latency of each contender against the batch.")


def draw_confusion(cells: Sequence[Row], side: str) -> Chart:
    """The confusion matrix of one side (`points.confusion_cells`): rows are true classes."""
    labels = list(dict.fromkeys(cell["true"] for cell in cells))
    base = _chart(cells).encode(
        x=alt.X("predicted:N", sort=None).axis(orient="top", labelAngle=-45), y=alt.Y("true:N", sort=None)
    )
    squares = base.mark_rect().encode(
        color=alt.Color("share:Q", legend=None).scale(domain=[0, 1], scheme="blues"),
        tooltip=_make_tips("true:N predicted:N count:Q share:Q.1%"),
    )
    dark = alt.condition("datum.share > 0.5", alt.value("#ffffff"), alt.value(INK))
    texts = base.mark_text(fontWeight=600).encode(text="count:Q", color=dark)
    height = min(480, max(120, 28 * len(labels)))
    about = f"Confusion matrix of the {side}."
    return _layer(squares, *[texts] * (len(labels) <= 12), about=about, width=320, height=height)


def draw_precisions(rows: Sequence[Row], record: Quantization) -> Chart:
    """Size against time for each file in a lower precision, with the float file as the mark to beat."""
    base = _chart(rows).encode(x=alt.X("size:Q", title="bytes"), y=alt.Y("time:Q", title="× the float file's time"))
    marks = base.mark_point(filled=True, size=90).encode(
        _encode_state(alt.Color, rows, COLORS, "verdict"),
        _encode_state(alt.Shape, rows, SHAPES, "verdict"),
        tooltip=_make_tips("name:N size:Q time:Q.3~g loss:N state:N", name="precision", state="verdict"),
    )
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
    names = base.mark_text(align="left", dx=9, dy=-7).encode(text="name:N")
    own = _chart([{"size": record.original_bytes, "time": 1.0}])
    lines = [own.mark_rule(style="contract").encode(x="size:Q"), own.mark_rule(style="contract").encode(y="time:Q")]
    about = "Scatter chart: size in bytes against time as a multiple of the float file's, for each precision."
    return _layer(*lines, bars, marks, names, about=about, height=260)


def draw_precision_recall(curves: Sequence[Row], proof: Proof, slider: bool = True) -> Chart:
    """Precision against recall over all thresholds, both sides; the parameter `at` is the threshold that is looked at."""
    rows = [{name: row[name] for name in ("side", "threshold", "precision", "recall")} for row in curves]
    limits = [row["threshold"] for row in rows]
    bind = alt.binding_range(min=min(limits), max=max(limits), name="threshold ") if slider else alt.Undefined
    x, y = (alt.X("recall:Q", title="recall"), alt.Y("precision:Q", title="precision"))
    dash = alt.StrokeDash("side:N", legend=_make_legend(None)).scale(domain=list(points.SIDES), range=[[1, 0], [7, 4]])
    base = _chart(rows).encode(_color_sides(rows, "side"))
    lines = base.mark_line(strokeWidth=2).encode(
        x.scale(domain=[0, 1]),
        y.scale(domain=[0, 1]),
        alt.Order("threshold:Q"),
        strokeDash=dash,
        tooltip=_make_tips("side:N threshold:Q.4~g precision:Q.4~g recall:Q.4~g"),
    )
    here = (
        base.transform_filter("datum.threshold >= at")
        .transform_aggregate(threshold="min(threshold)", precision="argmin(threshold)", groupby=["side"])
        .transform_calculate(y="datum.precision.precision", x="datum.precision.recall")
        .mark_point(filled=True, size=140, stroke="#ffffff", strokeWidth=1.5)
        .encode(x=alt.X("x:Q", title="recall"), y=alt.Y("y:Q", title="precision"))
    )
    about = "Precision against recall of both sides; the dots mark the threshold of the slider."
    return _layer(lines, here, about=about).add_params(
        alt.param(name="at", value=points.choose_threshold(proof, curves), bind=bind)
    )


def draw_calibration(rows: Sequence[Row]) -> Chart:
    """How often a side is right when it is so sure (`points.calibration_bins`); on the diagonal it is as sure as it should be."""
    lines = _chart(rows).mark_line(point={"size": 60})
    return _layer(
        _chart([{"v": 0, "w": 0}, {"v": 1, "w": 1}]).mark_line(style="even").encode(x="v:Q", y="w:Q"),
        lines.encode(
            x=alt.X("confidence:Q", title="how sure it is").scale(domain=[0, 1]),
            y=alt.Y("accuracy:Q", title="how often it is right").scale(domain=[0, 1]),
            color=_color_sides(rows, "side"),
            tooltip=_make_tips("side:N confidence:Q.3~g accuracy:Q.3~g count:Q.3~g"),
        ),
        about="Calibration: how often a side is right against how sure it is.",
    )
