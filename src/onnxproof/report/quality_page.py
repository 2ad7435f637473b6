"""The page's part about task quality."""

from __future__ import annotations

import math

from onnxproof.proof.proof import Proof
from onnxproof.proof.quality import Confusion, Flip, Quality, Rate
from onnxproof.report import charts, points
from onnxproof.report.figure import Content, Figure
from onnxproof.report.points import Row
from onnxproof.report.wording import number, short

SMALL = 12
"""Classes up to which a confusion matrix is a table; beyond, a chart and the pairs that are confused most."""
SHOWN_FLIPS = 200
COUNTS = ("tp", "fp", "fn", "tn")


def make(proof: Proof, content: Content) -> Row | None:
    """Metrics, confusion, thresholds, flips and calibration; None where quality was not asked for."""
    quality = proof.quality
    if quality is None:
        return None
    confusion = quality.confusion
    small = confusion is not None and len(confusion.labels) <= SMALL
    return {
        "task": quality.task,
        "n": quality.n,
        "metrics": _metrics(quality),
        "matrices": [_matrix(confusion, side) for side in points.SIDES] if confusion is not None and small else [],
        "confusions": [] if small else _confusion_charts(proof, content),
        "slider": _slider(proof, content),
        "curve": _curve_figure(proof, content),
        "flips": [_flip(flip) for flip in quality.flips[:SHOWN_FLIPS]],
        "all_flips": len(quality.flips),
        "flip_rate": _rate(quality.flip_rate),
        "calibration": _calibration_figure(proof, content),
    }


def _metrics(quality: Quality) -> list[tuple[str, str, str, str, str]]:
    """Metric, both sides, the candidate's interval, difference."""
    rows = []
    for name in dict.fromkeys([*quality.baseline, *quality.candidate]):
        b, c = quality.value(name, "baseline"), quality.value(name)
        difference = f"{c - b:+.4f}" if b is not None and c is not None else "–"
        ends = getattr(quality.intervals.get(name), "candidate", None) or (math.nan, math.nan)
        interval = "" if any(map(math.isnan, ends)) else "–".join(_metric(end) for end in ends)
        rows.append((name.replace("_", " "), _metric(b), _metric(c), interval, difference))
    return rows[:60]


def _metric(item: float | None) -> str:
    return "–" if item is None else f"{item:.4f}" if abs(item) < 1000 else number(item)


def _matrix(confusion: Confusion, side: str) -> Row:
    """A confusion matrix with the share of each true class, in percent, for shading."""
    rows = [
        {"label": label, "cells": [(count, round(100 * count / (sum(row) or 1))) for count in row]}
        for label, row in zip(confusion.labels, getattr(confusion, side), strict=True)
    ]
    return {"side": side, "labels": confusion.labels, "rows": rows}


def _confusion_charts(proof: Proof, content: Content) -> list[Figure]:
    figures: list[Figure] = []
    for side in points.SIDES:
        wrong = [cell for cell in points.confusion_cells(proof, side) if not cell["right"] and cell["count"]]
        worst = sorted(wrong, key=lambda cell: -cell["count"])[:20]
        table = [(c["true"], c["predicted"], str(c["count"])) for c in worst]
        caption = (
            f"{side}: {sum(c['count'] for c in wrong)} examples off the diagonal, in {len(wrong)} pairs of classes."
        )
        figure = Figure(f"confusion-{side}", f"Confusion, {side}", caption, ("true", "predicted", "count"), table)
        figures += content.draw(charts.confusion(proof, side, width="container"), figure)
    return figures


def _slider(proof: Proof, content: Content) -> Row | None:
    """The thresholds of both sides for the slider."""
    curves = points.curves(proof)
    if not curves:
        return None
    steps = sorted({p["threshold"] for curve in curves.values() for p in curve})
    start = charts.chosen_threshold(proof, steps)
    content.data["thresholds"] = {
        "steps": steps,
        "start": min(range(len(steps)), key=lambda i: abs(steps[i] - start)),
        "sides": {
            side: {key: [p[key] for p in curve] for key in ("threshold", *COUNTS)} for side, curve in curves.items()
        },
    }
    return {"sides": list(curves), "last": len(steps) - 1, "start": content.data["thresholds"]["start"]}


def _curve_figure(proof: Proof, content: Content) -> list[Figure]:
    said = [f"{side}: {len(curve)} thresholds" for side, curve in points.curves(proof).items()]
    caption = (
        f"Precision against recall over all thresholds ({'; '.join(said)}). The dots are at the slider's threshold."
    )
    chart = charts.precision_recall(proof, width="container", slider=False)
    return content.draw(chart, Figure("curve", "Precision and recall", caption))


def _flip(flip: Flip) -> Row:
    return {
        "id": short(str(flip.id), 120),
        "baseline": short(str(flip.baseline), 80),
        "candidate": short(str(flip.candidate), 80),
        "margin": number(flip.margin),
        "explained": {True: "rounding", False: "no", None: "unknown"}[flip.explained],
    }


def _rate(rate: Rate | None) -> str:
    return "" if rate is None else f"{rate.value:.3%} (95 % interval {rate.low:.3%} to {rate.high:.3%})"


def _calibration_figure(proof: Proof, content: Content) -> list[Figure]:
    bins = points.calibration_bins(proof)
    caption = "How often a side is right when it is so sure; on the dashed line it is exactly as sure as it should be."
    head = ("side", "how sure", "how often right", "examples")
    rows = [(b["side"], number(b["confidence"]), number(b["accuracy"]), str(b["count"] or "–")) for b in bins]
    return content.draw(
        charts.calibration(proof, width="container"), Figure("calibration", "Calibration", caption, head, rows)
    )
