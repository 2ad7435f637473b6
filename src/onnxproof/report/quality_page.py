"""The page's part about task quality."""

from __future__ import annotations

import math
from collections import Counter

from onnxproof.policy.merging import group_by
from onnxproof.proof.proof import Proof
from onnxproof.proof.quality import Quality
from onnxproof.report import charts, points
from onnxproof.report.charts import Content, Figure
from onnxproof.report.points import Row
from onnxproof.report.wording import show_number

# Classes up to which a confusion matrix is a table; beyond, a chart and the pairs that are confused most.
SMALL = 12
SHOWN_FLIPS = 200


def make_section(proof: Proof, content: Content) -> Row | None:
    """Metrics, confusion, thresholds, flips and calibration; None where quality was not asked for."""
    quality = proof.quality
    if quality is None:
        return None
    small = quality.confusion is not None and len(quality.confusion.labels) <= SMALL
    return {
        "facts": quality,
        "metrics": _list_metrics(quality),
        "matrices": [(side, getattr(quality.confusion, side)) for side in points.SIDES] if small else [],
        "confusions": [] if small else _draw_confusions(proof, content),
        "slider": _prepare_slider(proof, content),
        "curve": _draw_curves(proof, content),
        "flips": quality.flips[:SHOWN_FLIPS],
        "calibration": _draw_calibration(proof, content),
    }


def _list_metrics(quality: Quality) -> list[Row]:
    """Metric, both sides, the candidate's interval, difference."""
    rows: list[Row] = []
    for name in dict.fromkeys([*quality.baseline, *quality.candidate]):
        b, c = quality.value(name, "baseline"), quality.value(name)
        ends = getattr(quality.intervals.get(name), "candidate", None) or (math.nan, math.nan)
        apart = {
            "interval": "" if any(map(math.isnan, ends)) else "–".join(map(_show_metric, ends)),
            "difference": f"{c - b:+.4f}" if b is not None and c is not None else "–",
        }
        rows.append(
            {"metric": name.replace("_", " "), "baseline": _show_metric(b), "candidate": _show_metric(c), **apart}
        )
    return rows[:60]


def _show_metric(item: float | None) -> str:
    return "–" if item is None else f"{item:.4f}" if abs(item) < 1000 else show_number(item)


def _draw_confusions(proof: Proof, content: Content) -> list[Figure]:
    figures: list[Figure] = []
    for side in points.SIDES:
        cells = points.collect_confusion_cells(proof, side)
        wrong = sorted((c for c in cells if not c["right"] and c["count"]), key=lambda cell: -cell["count"])
        caption = (
            f"{side}: {sum(c['count'] for c in wrong)} examples off the diagonal, in {len(wrong)} pairs of classes."
        )
        columns = {name: name for name in ("true", "predicted", "count")}
        figure = Figure(f"confusion-{side}", f"Confusion, {side}", caption, columns, wrong[:20])
        figures += content.draw(figure, charts.draw_confusion, cells, side)
    return figures


def _prepare_slider(proof: Proof, content: Content) -> Row | None:
    """The thresholds of both sides for the slider."""
    rows = points.collect_curve_points(proof)
    if not rows:
        return None
    steps, chosen = sorted({row["threshold"] for row in rows}), points.choose_threshold(proof, rows)
    start = min(range(len(steps)), key=lambda i: abs(steps[i] - chosen))
    keys = ("threshold", "tp", "fp", "fn", "tn")
    curves = group_by(rows, lambda row: str(row["side"]))
    sides = {side: {key: [row[key] for row in curve] for key in keys} for side, curve in curves.items()}
    content.data["thresholds"] = {"steps": steps, "start": start, "sides": sides}
    return {"sides": list(sides), "last": len(steps) - 1, "start": start}


def _draw_curves(proof: Proof, content: Content) -> list[Figure]:
    rows = points.collect_curve_points(proof)
    counts = Counter(row["side"] for row in rows)
    said = "; ".join(f"{side}: {count} thresholds" for side, count in counts.items())
    caption = f"Precision against recall over all thresholds ({said}). The dots are at the slider's threshold."
    return content.draw(
        Figure("curve", "Precision and recall", caption), charts.draw_precision_recall, rows, proof, False
    )


def _draw_calibration(proof: Proof, content: Content) -> list[Figure]:
    bins = points.collect_calibration_bins(proof)
    caption = "How often a side is right when it is so sure; on the dashed line it is exactly as sure as it should be."
    columns = {"side": "side", "how sure": "confidence", "how often right": "accuracy", "examples": "count"}
    return content.draw(Figure("calibration", "Calibration", caption, columns, bins), charts.draw_calibration, bins)
