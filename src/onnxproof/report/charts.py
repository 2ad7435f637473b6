"""Rows → altair charts: the same for the page and for a notebook.

Names that come from the model are always values of rows, never names of fields or parts of expressions, so that nothing in
them means anything to the chart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from onnxproof.proof.proof import Proof
from onnxproof.report import points
from onnxproof.report.groups import natural
from onnxproof.report.points import FAINT, Judged, Row
from onnxproof.report.wording import BORN, short

Width = int | Literal["container"]
Chart = alt.Chart | alt.LayerChart

COLORS = {"agrees": "#2da44e", "note": "#7d8fa3", "review": "#c98a00", "block": "#e5534b", "rejected": "#a9a9a9"}
"""Middle tones, so that they can be told from a white and from a dark page (3:1 and more on both)."""
CELLS = {"agrees": "#8fd0a2", "note": "#b4bfca", "review": "#ecc060", "block": "#f2857e", "rejected": "#d4d4d4"}
"""For areas that carry dark text, on either page."""
INK = "#1f2328"
SHAPES = {"agrees": "circle", "note": "diamond", "review": "triangle-up", "block": "square", "rejected": "cross"}
SIDE_COLORS = ["#7d8fa3", "#3b82d0"]
ACCENT = "#3b82d0"
TO_BEAT = ("pytorch", "baseline")
HEIGHT = 300


def theme(dark: bool) -> dict[str, Any]:
    """The look of axes, texts and grids on a light and on a dark page."""
    text, muted, grid = ("#e6e8ea", "#a3abb3", "#2c3238") if dark else ("#1f2328", "#59636e", "#e4e7ea")
    axis = {
        "labelColor": muted,
        "titleColor": text,
        "gridColor": grid,
        "domainColor": muted,
        "tickColor": grid,
        "titleFontWeight": 500,
        "labelLimit": 140,
    }
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "mark": {"aria": False},  # a chart's description is read out, not each of its hundreds of points
        "axis": axis,
        "legend": {"labelColor": text, "titleColor": muted, "titleFontWeight": 500, "labelLimit": 220},
        "title": {"color": text, "fontWeight": 600},
        "style": {
            "contract": {"color": text, "strokeDash": [6, 4], "strokeWidth": 1.5},
            "even": {"color": muted, "strokeDash": [4, 4]},
        },
    }


def _data(rows: Sequence[Row]) -> alt.Data:
    """Rows for a chart; four digits are more than an eye can tell apart."""
    return alt.Data(values=[{key: _rounded(value) for key, value in row.items()} for row in rows])


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) and math.isfinite(value) else value


def _legend(title: str | None) -> alt.Legend:
    return alt.Legend(title=title, orient="top")


def _states(rows: Sequence[Row]) -> list[str]:
    return [state for state in points.STATES if any(row["state"] == state for row in rows)]


def _color(rows: Sequence[Row], title: str = "verdict of the case", colors: Mapping[str, str] = COLORS) -> alt.Color:
    states = _states(rows)
    return alt.Color("state:N", legend=_legend(title)).scale(domain=states, range=[colors[state] for state in states])


def _sided(rows: Sequence[Row], field: str) -> alt.Color:
    """A color for each contender or side: grey for the one to beat, blue for the candidate, then others."""
    names = list(dict.fromkeys(row[field] for row in rows))
    palette = [ACCENT, "#c98a00", "#8a63d2", "#2da44e", "#e5534b"]
    others = [name for name in names if name not in TO_BEAT]
    shown = [SIDE_COLORS[0] if name in TO_BEAT else palette[others.index(name) % len(palette)] for name in names]
    return alt.Color(f"{field}:N", legend=_legend(None)).scale(domain=names, range=shown)


# --- parity -----------------------------------------------------------------------------------------------------------


def errors(proof: Proof, rows: Sequence[Judged], *, width: Width = 620) -> Chart | None:
    """Error against magnitude with the band of rounding and the line of the contract."""
    shown = points.error_points(rows)
    if not shown:
        return None
    floor = max(min([row["error"] for row in shown if row["error"] > 0] or [1e-9]) / 3, FAINT)
    least = max(min([row["magnitude"] for row in shown if row["magnitude"] > 0] or [1e-3]), FAINT)
    drawn = [{**row, "y": max(row["error"], floor), "x": max(row["magnitude"], least)} for row in shown]
    layers = _background(proof, rows, drawn, floor)
    states = _states(drawn)
    scatter = (
        alt.Chart(_data(drawn))
        .mark_point(filled=True, size=64, opacity=0.8)
        .encode(
            x=alt.X("x:Q", title=f"magnitude of the element, |{proof.subject.baseline}|")
            .scale(type="log")
            .axis(format="~e", tickCount=6),
            y=alt.Y("y:Q", title="absolute difference").scale(type="log").axis(format="~e", tickCount=6),
            color=_color(drawn),
            shape=alt.Shape("state:N", legend=_legend("verdict of the case")).scale(
                domain=states, range=[SHAPES[s] for s in states]
            ),
            tooltip=[
                alt.Tooltip("case:N"),
                alt.Tooltip("output:N"),
                alt.Tooltip("error:Q", format=".3~e", title="difference"),
                alt.Tooltip("magnitude:Q", format=".3~e"),
                alt.Tooltip("noise_ratio:Q", format=".3~g", title="noise ratio"),
                alt.Tooltip("count:Q", title="points here"),
            ],
        )
    )
    description = "Scatter chart: absolute difference against magnitude, with the noise band and the tolerance line."
    return alt.layer(*layers, scatter).properties(width=width, height=HEIGHT, description=description)


def _background(proof: Proof, rows: Sequence[Judged], drawn: Sequence[Row], floor: float) -> list[alt.Chart]:
    """The band of rounding and the contract, over the range of magnitudes that were seen."""
    layers = []
    band = [{**row, "low": max(row["low"], floor)} for row in points.noise_band(rows, proof.policy.noise)]
    band = [row for row in band if row["high"] > floor]
    if band:
        layers.append(
            alt.Chart(_data(band))
            .mark_area(color=ACCENT, opacity=0.16, interpolate="monotone")
            .encode(x="magnitude:Q", y=alt.Y("low:Q", title="absolute difference"), y2="high:Q")
        )
    low, high = min(row["x"] for row in drawn), max(row["x"] for row in drawn)
    line = points.contract_line(proof, low / 1.5, high * 1.5)
    if line:
        layers.append(
            alt.Chart(_data(line)).mark_line(style="contract").encode(x="magnitude:Q", y="limit:Q", detail="line:N")
        )
    return layers


def heatmap(rows: Sequence[Judged], *, width: Width = 620) -> Chart | None:
    """Sizes × value profiles, colored by what the case says, with the noise ratio in the cell."""
    cells = points.heat_cells(rows)
    if not cells:
        return None
    drawn = [{**cell, "text": _cell_text(cell)} for cell in cells]
    sizes = sorted({cell["sizes"] for cell in drawn}, key=natural)
    base = alt.Chart(_data(drawn)).encode(
        x=alt.X("profile:N", title="values", sort=None).axis(labelAngle=-45).scale(paddingInner=0.04),
        y=alt.Y("sizes:N", title="sizes", sort=sizes).scale(paddingInner=0.08),
    )
    squares = base.mark_rect(cornerRadius=2).encode(
        color=_color(drawn, "worst of the cell", CELLS),
        tooltip=[
            alt.Tooltip("sizes:N"),
            alt.Tooltip("profile:N", title="values"),
            alt.Tooltip("state:N", title="verdict"),
            alt.Tooltip("max_abs:Q", format=".3~e", title="largest difference"),
            alt.Tooltip("noise_ratio:Q", format=".3~g", title="noise ratio"),
            alt.Tooltip("cases:Q"),
        ],
    )
    layers = [squares]
    if len({cell["profile"] for cell in drawn}) <= 24:
        layers.append(base.mark_text(color=INK, fontSize=10).encode(text="text:N"))
    description = "Heat map: sizes against value profiles; the color is the worst verdict, the number the noise ratio."
    return alt.layer(*layers).properties(width=width, height=max(60, 26 * len(sizes)), description=description)


def _cell_text(cell: Row) -> str:
    ratio = cell["noise_ratio"]
    if cell["nonfinite"] or ratio is None:
        return "NaN" if cell["nonfinite"] else ""
    return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e") if ratio >= 1000 else f"{ratio:.2g}"


def path(proof: Proof, case: str | None = None, *, width: Width = 620) -> Chart | None:
    """The error on its way through the graph, node by node, with the culprits marked."""
    steps = points.thinned(points.path_steps(proof, case))
    if not steps:
        return None
    ceiling = _ceiling(steps)
    floor = 1e-9
    drawn = [
        {**_named(s), "what": what, "y": _drawn(s[what], floor, ceiling)}
        for s in steps
        for what in ("inherited", "introduced")
    ]
    x = alt.X("step:Q", title="node on the way").axis(tickMinStep=1, format="d").scale(nice=False, padding=24)
    y = alt.Y("y:Q", title="error, relative to the value's scale")
    y = y.scale(type="log", domain=[floor, 20 * max(row["y"] for row in drawn)]).axis(format="~e", tickCount=6)
    names = ["inherited", "introduced"]
    color = alt.Color("what:N", legend=_legend(None)).scale(domain=names, range=SIDE_COLORS)
    tooltip = [
        alt.Tooltip("node:N"),
        alt.Tooltip("op:N", title="operator"),
        alt.Tooltip("module:N"),
        alt.Tooltip("introduced:Q", format=".3~e"),
        alt.Tooltip("inherited:Q", format=".3~e"),
        alt.Tooltip("source:N"),
    ]
    inherited = [row for row in drawn if row["what"] == "inherited"]
    introduced = [row for row in drawn if row["what"] == "introduced"]
    line = alt.Chart(_data(inherited)).mark_line(interpolate="step-after").encode(x, y, color, tooltip=tooltip)
    dots = alt.Chart(_data(introduced)).mark_point(filled=True, size=40).encode(x, y, color, tooltip=tooltip)
    culprits = [row for row in introduced if row["culprit"]]
    marks = alt.Chart(_data(culprits)).mark_point(
        size=260, strokeWidth=3, color=COLORS["block"], shape="circle", filled=False
    )
    labels = alt.Chart(_data(culprits[:6])).mark_text(dy=-18, color=COLORS["block"], fontWeight=600)
    chart = alt.layer(line, dots, marks.encode(x, y, tooltip=tooltip), labels.encode(x, y, text="op:N"))
    description = "Line chart: the error each node inherits and introduces; circles mark the culprits."
    return chart.properties(width=width, height=HEIGHT, description=description)


def _named(step: Row) -> Row:
    return {**step, **{key: short(step[key] or "", points.NAMED) for key in ("node", "op", "module", "source")}}


def _ceiling(steps: Sequence[Row]) -> float:
    """Where NaN and infinity are drawn: above everything that is finite."""
    finite = [s[what] for s in steps for what in ("introduced", "inherited") if s[what] is not None and s[what] < BORN]
    return max([*finite, 1e-3]) * 100


def _drawn(value: float | None, floor: float, ceiling: float) -> float:
    if value is None or math.isnan(value):
        return ceiling
    return min(max(value, floor), ceiling)


# --- latency ----------------------------------------------------------------------------------------------------------


def latency(proof: Proof, batch: Any = None, *, width: Width = 620) -> Chart | None:
    """How the times are spread, at one batch (the first where none is named)."""
    rows = points.distributions(proof)
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    if not batches:
        return None
    chosen = batch if batch is not None else batches[0]
    shown = [{**row, "floor": 0} for row in rows if row["batch"] == chosen]
    if not shown:
        return None
    chart = (
        alt.Chart(_data(shown))
        .mark_bar(opacity=0.65, binSpacing=0)
        .encode(
            x=alt.X("start:Q", title="milliseconds for a call").scale(zero=False),
            x2="end:Q",
            y=alt.Y("share:Q", title="share of the calls", stack=None).axis(format="%"),
            y2="floor:Q",
            color=_sided(shown, "contender"),
            tooltip=[
                alt.Tooltip("contender:N"),
                alt.Tooltip("start:Q", format=".3~g", title="from (ms)"),
                alt.Tooltip("end:Q", format=".3~g", title="to (ms)"),
                alt.Tooltip("count:Q", title="calls"),
            ],
        )
    )
    description = "Histogram of the time of a call for each contender."
    return chart.properties(width=width, height=HEIGHT, description=description)


def speedup(proof: Proof, *, width: Width = 620) -> Chart | None:
    """How many times faster than PyTorch at each batch, with the interval; 1 is even."""
    rows = points.speedups(proof)
    if not rows:
        return None
    x = alt.X("batch:O", title="batch").axis(labelAngle=0)
    base = alt.Chart(_data(rows))
    even = alt.Chart(_data([{"even": 1}])).mark_rule(style="even").encode(y="even:Q")
    bars = base.mark_rule(strokeWidth=2).encode(x, y="low:Q", y2="high:Q", color=_sided(rows, "contender"))
    dots = base.mark_point(filled=True, size=90).encode(
        x,
        y=alt.Y("ratio:Q", title="times faster").scale(zero=True),
        color=_sided(rows, "contender"),
        tooltip=["contender:N", "batch:O", *(alt.Tooltip(f"{f}:Q", format=".3~g") for f in ("ratio", "low", "high"))],
    )
    description = "Speed-up at each batch with its interval; the dashed line is even."
    return alt.layer(even, bars, dots).properties(width=width, height=HEIGHT, description=description)


def latency_by_batch(proof: Proof, *, width: Width = 620) -> Chart | None:
    """The median against the batch, with p95 where it is known."""
    rows = [row for row in points.batch_rows(proof) if row["p50_ms"] and row["batch"] is not None]
    if not rows:
        return None
    base = alt.Chart(_data(rows))
    x = alt.X("batch:O", title="batch").axis(labelAngle=0)
    color = _sided(rows, "contender")
    tails = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x, y="p50_ms:Q", y2="p95_ms:Q", color=color)
    lines = base.mark_line(point={"size": 60}).encode(
        x,
        y=alt.Y("p50_ms:Q", title="milliseconds, p50 up to p95").scale(type="log"),
        color=color,
        tooltip=[
            "contender:N",
            "batch:O",
            *(alt.Tooltip(f"{f}:Q", format=".4~g") for f in ("p50_ms", "p95_ms", "throughput")),
        ],
    )
    layers = [tails, lines] if all(row["p95_ms"] is not None for row in rows) else [lines]
    description = "Median latency of each contender against the batch."
    return alt.layer(*layers).properties(width=width, height=HEIGHT, description=description)


# --- quality ----------------------------------------------------------------------------------------------------------


def confusion(proof: Proof, side: str = "candidate", *, width: Width = 320) -> Chart | None:
    """The confusion matrix of one side: rows are true classes."""
    cells = points.confusion_cells(proof, side)
    if not cells:
        return None
    labels = list(dict.fromkeys(cell["true"] for cell in cells))
    base = alt.Chart(_data(cells)).encode(
        x=alt.X("predicted:N", sort=None).axis(orient="top", labelAngle=-45), y=alt.Y("true:N", sort=None)
    )
    squares = base.mark_rect().encode(
        color=alt.Color("share:Q", legend=None).scale(domain=[0, 1], scheme="blues"),
        tooltip=["true:N", "predicted:N", "count:Q", alt.Tooltip("share:Q", format=".1%")],
    )
    layers = [squares]
    if len(labels) <= 12:
        dark = alt.condition("datum.share > 0.5", alt.value("#ffffff"), alt.value("#1f2328"))
        layers.append(base.mark_text(fontWeight=600).encode(text="count:Q", color=dark))
    description = f"Confusion matrix of the {side}."
    height = min(480, max(120, 28 * len(labels)))
    return alt.layer(*layers).properties(width=width, height=height, description=description)


def precision_recall(proof: Proof, *, width: Width = 620, slider: bool = True) -> Chart | None:
    """Precision against recall over all thresholds, both sides; the parameter `at` is the threshold that is looked at."""
    rows: list[Row] = [
        {"side": side, **{name: p[name] for name in ("threshold", "precision", "recall")}}
        for side, curve in points.curves(proof).items()
        for p in curve
    ]
    if not rows:
        return None
    limits = [row["threshold"] for row in rows]
    bind = alt.binding_range(min=min(limits), max=max(limits), name="threshold ") if slider else alt.Undefined
    at = alt.param(name="at", value=chosen_threshold(proof, limits), bind=bind)
    tooltip = ["side:N", *(alt.Tooltip(f"{f}:Q", format=".4~g") for f in ("threshold", "precision", "recall"))]
    x = alt.X("recall:Q", title="recall").scale(domain=[0, 1])
    y = alt.Y("precision:Q", title="precision").scale(domain=[0, 1])
    color = _sided(rows, "side")
    order = alt.Order("threshold:Q")
    base = alt.Chart(_data(rows))
    dash = alt.StrokeDash("side:N", legend=_legend(None)).scale(domain=list(points.SIDES), range=[[1, 0], [7, 4]])
    lines = base.mark_line(strokeWidth=2).encode(x, y, color, order, strokeDash=dash, tooltip=tooltip)
    here = (
        base.transform_filter("datum.threshold >= at")
        .transform_aggregate(threshold="min(threshold)", precision="argmin(threshold)", groupby=["side"])
        .transform_calculate(y="datum.precision.precision", x="datum.precision.recall")
        .mark_point(filled=True, size=140, stroke="#ffffff", strokeWidth=1.5)
        .encode(x=alt.X("x:Q", title="recall"), y=alt.Y("y:Q", title="precision"), color=color)
    )
    description = "Precision against recall of both sides; the dots mark the threshold of the slider."
    return alt.layer(lines, here).add_params(at).properties(width=width, height=HEIGHT, description=description)


def chosen_threshold(proof: Proof, limits: Sequence[float]) -> float:
    """Where the slider starts: at the chosen threshold, or in the middle of the list."""
    thresholds = proof.quality.thresholds if proof.quality is not None else None
    chosen = thresholds.chosen.threshold if thresholds is not None else math.nan
    if math.isfinite(chosen):
        return min(max(chosen, min(limits)), max(limits))
    return float(sorted(limits)[len(limits) // 2])


def calibration(proof: Proof, *, width: Width = 620) -> Chart | None:
    """How often a side is right when it is so sure; on the diagonal it is as sure as it should be."""
    rows = points.calibration_bins(proof)
    if not rows:
        return None
    diagonal = [{"v": 0, "w": 0}, {"v": 1, "w": 1}]
    even = alt.Chart(_data(diagonal)).mark_line(style="even").encode(x="v:Q", y="w:Q")
    lines = (
        alt.Chart(_data(rows))
        .mark_line(point={"size": 60})
        .encode(
            x=alt.X("confidence:Q", title="how sure it is").scale(domain=[0, 1]),
            y=alt.Y("accuracy:Q", title="how often it is right").scale(domain=[0, 1]),
            color=_sided(rows, "side"),
            tooltip=["side:N", *(alt.Tooltip(f"{f}:Q", format=".3~g") for f in ("confidence", "accuracy", "count"))],
        )
    )
    description = "Calibration: how often a side is right against how sure it is."
    return alt.layer(even, lines).properties(width=width, height=HEIGHT, description=description)
