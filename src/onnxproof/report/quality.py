"""The quality part of a proof as text."""

from __future__ import annotations

import math
from typing import Any

from onnxproof.policy.quality import is_imbalanced
from onnxproof.proof.quality import Confusion, Ends, Flip, Quality

SHOWN_METRICS = 6
SHOWN_CLASSES = 5
LEADING = {
    "binary": ("accuracy", "recall", "precision", "f1", "roc_auc", "pr_auc", "log_loss", "ece"),
    "imbalanced": ("recall", "precision", "pr_auc", "f1", "roc_auc", "accuracy"),
    "multiclass": ("accuracy", "f1", "recall", "precision", "log_loss", "ece"),
    "multilabel": ("hamming_accuracy", "accuracy", "f1", "recall", "precision", "pr_auc"),
    "segmentation": ("miou", "pixel_accuracy"),
    "tokens": ("f1", "token_accuracy"),
    "detection": ("map", "map_50", "map_75"),
    "embedding": ("recall_at_1", "recall_at_5", "mean_reciprocal_rank", "cosine", "same_neighbour"),
    "ranking": ("ndcg_at_10", "mean_reciprocal_rank", "same_best"),
    "keypoints": ("oks", "pck_at_10"),
    "generate": ("perplexity", "exact_match", "prefix"),
    "regression": ("mae", "rmse", "r2", "relative_error"),
}
NAMES = {
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "f1": "F1",
    "ndcg_at_10": "NDCG@10",
    "oks": "OKS",
    "pck_at_10": "PCK@0.1",
    "ece": "ECE",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "miou": "mIoU",
}
NAMES |= {"map": "mAP", "map_50": "mAP@50", "map_75": "mAP@75"}


def tell_headline(q: Quality, cause: str = "rounding") -> str:
    """One line where nothing is wrong; `cause`: what changed decisions are explained by."""
    leading = [f"{_name_metric(name)} {q.candidate[name]:.4g}" for name in _choose_metrics(q)[:1]]
    return ", ".join([_tell_examples(q), _tell_flips(q, cause), *leading])


def tell_lines(q: Quality, baseline: str, *, short: bool = False) -> list[str]:
    """Both sides side by side, confusion, flips, thresholds."""
    shown = ["", f"  {_tell_task(q)}", *_show_table(q, 4 if short else SHOWN_METRICS, baseline)]
    if not short and q.confusion is not None:
        shown += _show_confusion(q.confusion, baseline)
    alike = q.preprocessing is not None and q.preprocessing.same
    served = ["  training and serving prepare the records alike"] * alike
    return [*shown, *_tell_changed(q), *_show_thresholds(q, baseline), *served]


def _tell_examples(q: Quality) -> str:
    left_out = q.measured is not None and q.measured < q.n
    return f"{q.n:,} examples ({q.measured:,} measured)" if left_out else f"{q.n:,} examples"


def _tell_task(q: Quality) -> str:
    classes = (
        f", {len(q.classes)} classes"
        if q.task not in ("binary", "regression", "custom", "generate") and q.classes
        else ""
    )
    positive = f", positive is {q.positive}" if q.positive is not None else ""
    where = {"processes": f", {q.workers} processes", "ray": ", on Ray"}.get(q.where, "")
    decisions = (
        f" with {q.decisions:,} {'boxes' if q.task == 'detection' else 'decisions'}" if q.decisions is not None else ""
    )
    return f"{_tell_examples(q)}{decisions}: {q.task}{classes}{positive}; {q.output} holds {_name_scale(q)}{where}"


def _name_scale(q: Quality) -> str:
    words = {"probability": "probabilities", "logit": "logits", "log-probability": "log-probabilities"}
    return (words | {"decision": "class numbers", "value": "numbers"}).get(q.scale, q.scale)


def _choose_metrics(q: Quality) -> list[str]:
    """The metrics that lead, then the user's own, then others."""
    leading = LEADING.get("imbalanced" if is_imbalanced(q) else q.task, ())
    known = {name for names in LEADING.values() for name in names}
    lesser = {"brier", "balanced_accuracy"} | known
    own = [name for name in q.candidate if name not in lesser and not name.endswith(("_weighted", "_micro"))]
    return [*own, *(n for n in leading if n in q.candidate)] or list(q.candidate)


def _name_metric(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_", " "))


def _show_table(q: Quality, count: int, baseline: str) -> list[str]:
    rows: list[tuple[str, ...]] = [("", baseline, "onnxruntime", "95 % interval", "difference")]
    for metric in _choose_metrics(q)[:count]:
        interval = q.intervals.get(metric)
        apart = q.candidate[metric] - q.baseline.get(metric, q.candidate[metric])
        # What is counted against the baseline has no number there.
        sides = ("–" if one is None else f"{one:.4f}" for one in (q.baseline.get(metric), q.candidate[metric]))
        span, moved = (
            (_show_span(interval.candidate, "–"), _show_span(interval.difference, "…")) if interval else ("", "")
        )
        rows.append((_name_metric(metric), *sides, span, f"{apart:+.4f} {moved}".rstrip() if apart else "none"))
    wide, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    numbers = ["".join(f"  {cell:>{w}}" for cell, w in zip(row[1:], widths, strict=True)) for row in rows]
    return [f"  {row[0]:<{wide}}{told}".rstrip() for row, told in zip(rows, numbers, strict=True)]


def _show_span(ends: Ends | None, dash: str) -> str:
    if ends is None or any(map(math.isnan, ends)):
        return ""
    return f"{ends[0]:.4f}{dash}{ends[1]:.4f}" if dash == "–" else f"({ends[0]:+.4f} {dash} {ends[1]:+.4f})"


def _show_confusion(c: Confusion, baseline: str) -> list[str]:
    if len(c.labels) > SHOWN_CLASSES:
        return _tell_confusions(c)
    width = max(6, *(len(label) for label in c.labels), *(len(str(v)) for row in c.candidate for v in row))
    head = "  ".join(label.rjust(width) for label in c.labels)
    rows = [f"  {'true, onnxruntime decides':<26}  {head}"]
    for label, ours, theirs in zip(c.labels, c.candidate, c.baseline, strict=True):
        cells = "  ".join(str(v).rjust(width) for v in ours)
        moved = f"   {baseline}: {', '.join(map(str, theirs))}" if ours != theirs else ""
        rows.append(f"  {label:<26}  {cells}{moved}")
    return rows


def _tell_confusions(c: Confusion) -> list[str]:
    pairs = [(v, i, j) for i, row in enumerate(c.candidate) for j, v in enumerate(row) if i != j and v]
    worst = sorted(pairs, reverse=True)[:3]
    if not worst:
        return ["  no example is confused"]
    return ["  most confused: " + ", ".join(f"{c.labels[i]} as {c.labels[j]} ({v})" for v, i, j in worst)]


def _tell_flips(q: Quality, cause: str) -> str:
    if q.flip_rate is None:
        return f"scores differ by up to {q.score_difference.max_abs:.2g}"
    return "no decision changed" if not q.flip_count else f"{q.flip_count} decisions changed by {cause}"


def _tell_changed(q: Quality) -> list[str]:
    if q.flip_rate is None:
        return [f"  scores differ by up to {q.score_difference.max_abs:.3g}"]
    if not q.flip_count:
        text = f"no decision changed; zero flips in {q.decisions or q.n:,} {'examples' if q.decisions is None else 'decisions'} bound the rate at {_show_percent(q.flip_rate.high)}"
    else:
        wrong, unknown = len(q.unexplained), sum(1 for f in q.flips if f.explained is None)
        rest = f", {unknown} not examined" if unknown else ""
        text = (
            f"{q.flip_count} decisions changed ({q.flip_rate.value:.2%}, interval {q.flip_rate.low:.2%}–{q.flip_rate.high:.2%}): "
            f"{wrong} not by rounding{rest}"
        )
    test, even = q.tests.equivalence, q.tests.mcnemar
    if even is not None and q.flip_count:
        text += f"; McNemar p = {even.p:.2g}"
    if test is not None and test.within:
        text += f"; accuracies are the same within ±{test.delta:g}"
    return [f"  {text}", *(f"    {_show_flip(flip)}" for flip in q.unexplained[:2])]


def _show_percent(share: float) -> str:
    """Two digits that say something."""
    return f"{share:.2%}" if share >= 0.0005 else f"{100 * share:.2g}%"


def _show_flip(flip: Flip) -> str:
    label = "–" if flip.label is None else flip.label
    return (
        f"example {flip.id}: {flip.baseline} ({_show_score(flip.baseline_score)}) became {flip.candidate} "
        f"({_show_score(flip.candidate_score)}), label {label}, margin {_show_score(flip.margin)}, "
        f"rounding explains {_show_score(flip.allowed)}"
    )


def _show_score(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _show_thresholds(q: Quality, baseline: str) -> list[str]:
    rows = []
    for goal in q.thresholds.goals[:3] if q.thresholds is not None else ():
        ours, theirs = goal.candidate, goal.baseline
        if ours is None:
            continue
        cost = f", cost {ours.cost:.4g} per example" if ours.cost is not None else ""
        moved = f", {baseline} {theirs.threshold:.6g} (moved {goal.moved:+.2g})" if theirs is not None else ""
        rows.append(
            f"  {goal.goal}: threshold {ours.threshold:.6g}{moved}; recall {ours.recall:.4f}, precision {ours.precision:.4f}{cost}"
        )
    return rows
