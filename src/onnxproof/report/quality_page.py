"""The page's part about task quality: every field of the proof's `quality` is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxproof.proof.proof import Proof
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
    flips = list(quality.get("flips") or ())
    return {
        "task": str(quality.get("task") or ""),
        "n": quality.get("n"),
        "metrics": _metrics(quality),
        "matrices": [
            _matrix(quality, side) for side in points.SIDES if _labels(quality) and len(_labels(quality)) <= SMALL
        ],
        "confusions": _confusion_charts(proof, content),
        "slider": _slider(proof, content),
        "curve": _curve_figure(proof, content),
        "flips": [_flip(flip) for flip in flips[:SHOWN_FLIPS]],
        "all_flips": len(flips),
        "flip_rate": _rate(quality.get("flip_rate") or {}),
        "calibration": _calibration_figure(proof, content),
    }


def _metrics(quality: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Metric, both sides, the candidate's interval, difference."""
    baseline, candidate = quality.get("baseline") or {}, quality.get("candidate") or {}
    rows = []
    for name in dict.fromkeys([*baseline, *candidate]):
        b, c = baseline.get(name), candidate.get(name)
        if not all(item is None or _is_number(item) for item in (b, c)):
            continue
        difference = f"{c - b:+.4f}" if b is not None and c is not None else "–"
        ends = ((quality.get("intervals") or {}).get(name) or {}).get("candidate") or ()
        interval = "–".join(_metric(end) for end in ends) if len(ends) == 2 and all(map(_is_number, ends)) else ""
        rows.append((str(name).replace("_", " "), _metric(b), _metric(c), interval, difference))
    return rows[:60]


def _is_number(item: Any) -> bool:
    return isinstance(item, (int, float)) and not isinstance(item, bool)


def _metric(item: float | None) -> str:
    return "–" if item is None else f"{item:.4f}" if abs(item) < 1000 else number(item)


def _labels(quality: Mapping[str, Any]) -> list[str]:
    return [str(label) for label in (quality.get("confusion") or {}).get("labels") or ()]


def _matrix(quality: Mapping[str, Any], side: str) -> Row:
    """A confusion matrix with the share of each true class, in percent, for shading."""
    matrix: Sequence[Sequence[int]] = (quality.get("confusion") or {}).get(side) or ()
    rows = [
        {"label": label, "cells": [(count, round(100 * count / (sum(row) or 1))) for count in row]}
        for label, row in zip(_labels(quality), matrix, strict=False)
    ]
    return {"side": side, "labels": _labels(quality), "rows": rows}


def _confusion_charts(proof: Proof, content: Content) -> list[Figure]:
    if len(_labels(proof.quality or {})) <= SMALL:
        return []
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
    """The thresholds of both sides for the slider; None where the counts are not known."""
    curves = {
        side: c for side, c in points.curves(proof).items() if all(p.get(k) is not None for p in c for k in COUNTS)
    }
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


def _flip(flip: Mapping[str, Any]) -> Row:
    return {
        "id": short(str(flip.get("id", "")), 120),
        "baseline": short(str(flip.get("baseline", "")), 80),
        "candidate": short(str(flip.get("candidate", "")), 80),
        "margin": number(flip.get("margin")) if _is_number(flip.get("margin")) else "–",
        "explained": {True: "rounding", False: "no"}.get(flip.get("explained"), "unknown"),  # type: ignore[arg-type]  # anything else is unknown
    }


def _rate(rate: Mapping[str, Any]) -> str:
    if rate.get("value") is None:
        return ""
    text = f"{rate['value']:.3%}"
    if rate.get("low") is not None and rate.get("high") is not None:
        text += f" (95 % interval {rate['low']:.3%} to {rate['high']:.3%})"
    return text


def _calibration_figure(proof: Proof, content: Content) -> list[Figure]:
    bins = points.calibration_bins(proof)
    caption = "How often a side is right when it is so sure; on the dashed line it is exactly as sure as it should be."
    head = ("side", "how sure", "how often right", "examples")
    rows = [(b["side"], number(b["confidence"]), number(b["accuracy"]), str(b["count"] or "–")) for b in bins]
    return content.draw(
        charts.calibration(proof, width="container"), Figure("calibration", "Calibration", caption, head, rows)
    )
