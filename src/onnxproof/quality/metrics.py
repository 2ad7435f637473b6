"""Metrics of both sides, per class and averaged, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Scores, Side
from onnxproof.quality.intervals import Bootstrap, Sums, paired, percentile, wilson
from onnxproof.quality.task import Plan, probabilities
from onnxproof.quality.thresholds import Sweep

Array = NDArray[Any]
CALIBRATION_BINS = 15
AUC_BINS = 1024
AUC_CLASSES = 32
"""Classes up to which areas under curves get intervals."""
CUSTOM_REPLICATES, CUSTOM_ROWS = 200, 20_000
LOWER_IS_BETTER = frozenset({"log_loss", "ece", "brier", "mae", "rmse", "relative_error"})


@dataclass
class Measured:
    """Metrics as they come together."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """Side → metric → value."""
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Metric → side (and `difference`) → low, high; and the method."""
    per_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    confusion: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None

    def put(self, side: str, metric: str, value: float) -> None:
        """Note a value."""
        self.values.setdefault(side, {})[metric] = float(value)

    def proportion(self, side: str, metric: str, successes: int, n: int) -> None:
        """Note a share with Wilson's interval."""
        interval = wilson(successes, n)
        self.put(side, metric, 0.0 if math.isnan(interval.value) else interval.value)
        self._interval(metric, side, (interval.low, interval.high), "wilson")

    def bootstrapped(self, metric: str, ends: Mapping[str, tuple[float, float]]) -> None:
        """Note the intervals of a paired bootstrap; a share keeps Wilson's and gets the difference."""
        for side, pair in ends.items():
            if side == "difference" or self.intervals.get(metric, {}).get("method") != "wilson":
                self._interval(metric, side, pair, "bootstrap")

    def _interval(self, metric: str, side: str, pair: tuple[float, float], method: str) -> None:
        entry = self.intervals.setdefault(metric, {"method": method})
        entry[side] = [pair[0], pair[1]]


def measure(scores: Scores, seed: int = 0) -> Measured:
    """Everything that can be said about these scores without a custom metric."""
    measured = Measured()
    if not scores.n or scores.plan.task == "custom":
        return measured
    bootstrap = Bootstrap(len(scores.labels), seed)
    if scores.plan.task == "regression":
        _regression(scores, measured, bootstrap)
    elif scores.plan.task == "multilabel":
        _multilabel(scores, measured, bootstrap)
    else:
        _classes(scores, measured, bootstrap)
    return measured


# --- classes ------------------------------------------------------------------------------------------------------


def _classes(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    count = len(plan.classes)
    matrices = {side: confusion(labels, s.decisions, count) for side, s in scores.sides.items()}
    measured.confusion = {"labels": list(plan.classes), **{side: m.tolist() for side, m in matrices.items()}}
    for side, answers in scores.sides.items():
        _counted(measured, side, labels, answers.decisions, matrices[side], plan)
        _graded(measured, side, labels, answers, plan)
    _class_intervals(scores, measured, bootstrap)
    _graded_intervals(scores, measured, bootstrap)
    measured.calibration = {
        side: _reliability(labels, s, plan) for side, s in scores.sides.items() if plan.scale != "decision"
    }


def confusion(labels: Array, decisions: Array, count: int) -> NDArray[np.int64]:
    """Rows are true classes, columns decisions; what has no label or no decision is in neither."""
    known = (labels >= 0) & (decisions >= 0) & (decisions < count)
    cells = labels[known].astype(np.int64) * count + decisions[known]
    return np.bincount(cells, minlength=count * count).reshape(count, count)


def _counted(measured: Measured, side: str, labels: Array, decisions: Array, matrix: Array, plan: Plan) -> None:
    known = labels >= 0
    n = int(known.sum())
    support = np.bincount(labels[known], minlength=len(plan.classes))
    right, decided = matrix.diagonal(), matrix.sum(axis=0)
    measured.proportion(side, "accuracy", int(right.sum()), n)
    precision, recall, f1, _ = sk.precision_recall_fscore_support(
        labels[known], decisions[known], labels=np.arange(len(plan.classes)), zero_division=0
    )
    present = support > 0
    if plan.task == "binary":
        p = plan.positive
        measured.proportion(side, "precision", int(right[p]), int(decided[p]))
        measured.proportion(side, "recall", int(right[p]), int(support[p]))
        measured.put(side, "f1", f1[p])
    else:
        weights = support / max(n, 1)
        for name, values in (("precision", precision), ("recall", recall), ("f1", f1)):
            measured.put(side, name, float(values[present].mean()) if present.any() else 0.0)
            measured.put(side, f"{name}_weighted", float((values * weights).sum()))
    measured.put(side, "balanced_accuracy", float(recall[present].mean()) if present.any() else 0.0)
    for k, name in enumerate(plan.classes):
        entry = measured.per_class.setdefault(name, {"support": int(support[k])})
        low_recall, low_precision = wilson(int(right[k]), int(support[k])), wilson(int(right[k]), int(decided[k]))
        entry[side] = {
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(f1[k]),
            "recall_low": low_recall.low,
            "recall_high": low_recall.high,
            "precision_low": low_precision.low,
            "precision_high": low_precision.high,
        }


def class_scores(answers: Side, plan: Plan) -> Sequence[tuple[int, Array]]:
    """(class, scores toward it), for the classes that have scores."""
    if answers.scores is None or plan.scale == "decision":
        return []
    if plan.task == "binary":
        return [(plan.positive, answers.scores)]
    # Areas under curves compare classes across rows: logits have to become probabilities first.
    p = probabilities(answers.scores, plan).astype(np.float32)
    return [(k, p[:, k]) for k in range(p.shape[1])]


def _graded(measured: Measured, side: str, labels: Array, answers: Side, plan: Plan) -> None:
    """What needs scores: areas under curves, log-loss, Brier."""
    known = labels >= 0
    areas: list[tuple[float, float]] = []
    for k, toward in class_scores(answers, plan):
        sweep = Sweep.of(toward[known], labels[known] == k)
        pair = sweep.roc_auc(), sweep.average_precision()
        measured.per_class[plan.classes[k]][side] |= {"roc_auc": pair[0], "pr_auc": pair[1]}
        if not math.isnan(pair[0]):
            areas.append(pair)
    if areas:
        measured.put(side, "roc_auc", float(np.mean([a for a, _ in areas])))
        measured.put(side, "pr_auc", float(np.mean([b for _, b in areas])))
    for name, values in losses(labels, answers, plan).items():
        finite = values[known & np.isfinite(values)]
        if finite.size:
            measured.put(side, name, float(finite.mean(dtype=np.float64)))


def losses(labels: Array, answers: Side, plan: Plan) -> dict[str, Array]:
    """Log-loss and Brier's score of every example."""
    if plan.scale == "decision":
        return {}
    if answers.scores is None:
        true, square = answers.true, answers.square
        assert true is not None  # kept where scores are not
        assert square is not None
        return {"log_loss": -np.log(np.clip(true.astype(np.float64), 1e-15, 1.0)), "brier": square.astype(np.float64)}
    if plan.task == "binary":
        positive = labels == plan.positive
        p = probabilities(answers.scores, plan)
        true = np.where(positive, p, 1.0 - p)
        return {"log_loss": -np.log(np.clip(true, 1e-15, 1.0)), "brier": (p - positive) ** 2}
    p = probabilities(answers.scores, plan)
    rows = np.arange(len(p))
    true = p[rows, np.maximum(labels, 0)]
    square = (p**2).sum(axis=1) - 2.0 * true + 1.0
    return {"log_loss": -np.log(np.clip(true, 1e-15, 1.0)), "brier": square}


def confidence(labels: Array, answers: Side, plan: Plan) -> tuple[Array, Array]:
    """What calibration compares: a probability, and whether it came true.

    For a binary task the probability of the positive class, else that of the decision.
    """
    if plan.task == "binary" and answers.scores is not None:
        return probabilities(answers.scores, plan), labels == plan.positive
    right = answers.decisions == labels
    if answers.scores is None:
        assert answers.confidence is not None  # kept where scores are not
        return answers.confidence.astype(np.float64), right
    return probabilities(answers.scores, plan).max(axis=1), right


def _bins(probability: Array) -> Array:
    with np.errstate(invalid="ignore"):
        places = np.clip((probability * CALIBRATION_BINS).astype(np.int64), 0, CALIBRATION_BINS - 1)
    return np.where(np.isfinite(probability), places, -1)


def _ece(sums: Sums) -> NDArray[np.float64]:
    """Rows of (count, sum of probabilities, sum of hits) per bin → expected calibration error."""
    count, p, hit = np.split(sums, 3, axis=1)
    return np.asarray(np.abs(p - hit).sum(axis=1) / np.maximum(count.sum(axis=1), 1))


def _calibration_sums(labels: Array, answers: Side, plan: Plan, bootstrap: Bootstrap) -> Sums:
    p, hit = confidence(labels, answers, plan)
    cells = np.where(labels >= 0, _bins(p), -1)
    parts = [bootstrap.sums(cells, w, CALIBRATION_BINS) for w in (None, p, hit.astype(np.float64))]
    return np.concatenate(parts, axis=1)


def _reliability(labels: Array, answers: Side, plan: Plan) -> list[dict[str, float]]:
    """Per bin that is not empty: count, mean probability, share that came true."""
    p, hit = confidence(labels, answers, plan)
    cells = np.where(labels >= 0, _bins(p), -1)
    rows = []
    for i in range(CALIBRATION_BINS):
        chosen = cells == i
        count = int(chosen.sum())
        if count:
            rows.append({"count": count, "confidence": float(p[chosen].mean()), "accuracy": float(hit[chosen].mean())})
    return rows


def _class_intervals(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    count = len(plan.classes)
    support = bootstrap.sums(labels, None, count)
    sums = {}
    for side, answers in scores.sides.items():
        right = np.where(answers.decisions == labels, labels, -1)
        decided = np.where(labels >= 0, answers.decisions, -1)
        sums[side] = np.concatenate(
            [bootstrap.sums(right, None, count), bootstrap.sums(decided, None, count), support], axis=1
        )
    totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
    for metric, statistic in _count_statistics(plan).items():
        measured.bootstrapped(metric, paired(totals, statistic))


def _count_statistics(plan: Plan) -> dict[str, Callable[[Sums], NDArray[np.float64]]]:
    """Statistics of (right, decided, support) per class."""

    def parts(sums: Sums) -> tuple[Array, Array, Array]:
        right, decided, support = np.split(sums, 3, axis=1)
        return right, decided, support

    def rates(sums: Sums) -> dict[str, Array]:
        right, decided, support = parts(sums)
        return {
            "precision": right / np.maximum(decided, 1),
            "recall": right / np.maximum(support, 1),
            "f1": 2 * right / np.maximum(decided + support, 1),
        }

    def accuracy(sums: Sums) -> NDArray[np.float64]:
        right, _, support = parts(sums)
        return np.asarray(right.sum(axis=1) / np.maximum(support.sum(axis=1), 1))

    def single(name: str) -> Callable[[Sums], NDArray[np.float64]]:
        return lambda sums: np.asarray(rates(sums)[name][:, plan.positive])

    def macro(name: str) -> Callable[[Sums], NDArray[np.float64]]:
        def statistic(sums: Sums) -> NDArray[np.float64]:
            present = parts(sums)[2] > 0
            return np.asarray((rates(sums)[name] * present).sum(axis=1) / np.maximum(present.sum(axis=1), 1))

        return statistic

    def weighted(name: str) -> Callable[[Sums], NDArray[np.float64]]:
        def statistic(sums: Sums) -> NDArray[np.float64]:
            support = parts(sums)[2]
            return np.asarray((rates(sums)[name] * support).sum(axis=1) / np.maximum(support.sum(axis=1), 1))

        return statistic

    chosen = {"accuracy": accuracy, "balanced_accuracy": macro("recall")}
    for name in ("precision", "recall", "f1"):
        chosen[name] = single(name) if plan.task == "binary" else macro(name)
        if plan.task != "binary":
            chosen[f"{name}_weighted"] = weighted(name)
    return chosen


def _graded_intervals(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels, scores.plan
    if plan.scale == "decision":
        return
    _mean_intervals(
        labels >= 0, {side: losses(labels, s, plan) for side, s in scores.sides.items()}, measured, bootstrap
    )
    calibration = {side: _calibration_sums(labels, s, plan, bootstrap) for side, s in scores.sides.items()}
    for side, sums in calibration.items():
        measured.put(side, "ece", float(_ece(sums.sum(axis=0, keepdims=True))[0]))
    totals = {side: bootstrap.totals(sums) for side, sums in calibration.items()}
    measured.bootstrapped("ece", paired(totals, _ece))
    if len(plan.classes) <= AUC_CLASSES:
        by_class = {side: dict(class_scores(s, plan)) for side, s in scores.sides.items()}
        truths = {k: np.where(labels >= 0, labels == k, -1) for k in next(iter(by_class.values()))}
        _area_intervals(truths, by_class, measured, bootstrap)


def _mean_intervals(
    known: Array, values: Mapping[str, Mapping[str, Array]], measured: Measured, bootstrap: Bootstrap
) -> None:
    """Intervals of means of numbers per example."""
    for name in next(iter(values.values()), {}):
        sums = {}
        for side, mine in values.items():
            fine = known & np.isfinite(mine[name])
            cells = np.where(fine, 0, -1)
            sums[side] = np.concatenate([bootstrap.sums(cells, mine[name], 1), bootstrap.sums(cells, None, 1)], axis=1)
        totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
        measured.bootstrapped(name, paired(totals, lambda s: np.asarray(s[:, 0] / np.maximum(s[:, 1], 1))))


def _area_intervals(
    truths: Mapping[int, Array], by_class: Mapping[str, Mapping[int, Array]], measured: Measured, bootstrap: Bootstrap
) -> None:
    """Areas under curves of every replicate, averaged over classes."""
    totals: dict[str, dict[str, list[Array]]] = {side: {"roc_auc": [], "pr_auc": []} for side in by_class}
    bins = AUC_BINS if len(truths) == 1 else 128
    for k, truth in truths.items():
        if not (truth == 1).any() or not (truth == 0).any():
            continue
        for side, mine in by_class.items():
            places, width = _ranked(mine[k], bins)
            cells = np.where((truth >= 0) & (places >= 0), places * 2 + np.maximum(truth, 0), -1)
            replicates = bootstrap.totals(bootstrap.sums(cells, None, 2 * width)).reshape(-1, width, 2)
            for name, area in (("roc_auc", _roc_area), ("pr_auc", _pr_area)):
                totals[side][name].append(area(replicates[:, :, 1], replicates[:, :, 0]))
    for name in ("roc_auc", "pr_auc"):
        means = {side: np.mean(mine[name], axis=0) for side, mine in totals.items() if mine[name]}
        ends = {side: percentile(values) for side, values in means.items()}
        if len(means) == 2:
            ends["difference"] = percentile(means["candidate"] - means["baseline"])
        measured.bootstrapped(name, ends)


def _ranked(scores: Array, bins: int) -> tuple[Array, int]:
    """Scores as numbers of bins that hold about equally many, in ascending order; −1 for NaN."""
    known = ~np.isnan(scores)
    finite = scores[known]
    step = max(1, len(finite) // 200_000)
    edges = np.unique(np.quantile(finite[::step], np.linspace(0, 1, bins + 1)[1:-1])) if finite.size else np.zeros(0)
    values = np.unique(finite) if len(finite) <= bins else None
    edges = (values[1:] if values is not None and len(values) else edges).astype(scores.dtype)
    places = np.full(len(scores), -1, np.int64)
    places[known] = np.searchsorted(edges, finite, side="right")
    return places, len(edges) + 1


def _roc_area(positive: Array, negative: Array) -> Array:
    below = np.cumsum(negative, axis=1) - negative
    top = (positive * (below + negative / 2)).sum(axis=1)
    bottom = positive.sum(axis=1) * negative.sum(axis=1)
    return np.asarray(np.where(bottom > 0, top / np.maximum(bottom, 1), np.nan))


def _pr_area(positive: Array, negative: Array) -> Array:
    hits, alarms = np.cumsum(positive[:, ::-1], axis=1), np.cumsum(negative[:, ::-1], axis=1)
    precision = hits / np.maximum(hits + alarms, 1)
    total = positive.sum(axis=1)
    return np.asarray(np.where(total > 0, (positive[:, ::-1] * precision).sum(axis=1) / np.maximum(total, 1), np.nan))


# --- several labels -----------------------------------------------------------------------------------------------


def _multilabel(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels, plan = scores.labels.astype(np.int64), scores.plan
    vectors: dict[str, dict[str, Array]] = {}
    for side, answers in scores.sides.items():
        decisions = answers.decisions.astype(np.int64)
        exact = (decisions == labels).all(axis=1)
        measured.proportion(side, "accuracy", int(exact.sum()), len(labels))
        measured.put(side, "hamming_accuracy", float((decisions == labels).mean()))
        for average in ("macro", "micro", "weighted"):
            values = sk.precision_recall_fscore_support(labels, decisions, average=average, zero_division=0)
            for name, value in zip(("precision", "recall", "f1"), values[:3], strict=True):
                measured.put(side, name if average == "macro" else f"{name}_{average}", float(value))
        vectors[side] = _label_losses(labels, answers, plan)
        for name, values in vectors[side].items():
            measured.put(side, name, float(np.nanmean(values)))
        _per_label(measured, side, labels, decisions, answers, plan)
    _mean_intervals(np.ones(len(labels), bool), vectors, measured, bootstrap)
    _label_intervals(scores, labels, measured, bootstrap)


def _label_losses(labels: Array, answers: Side, plan: Plan) -> dict[str, Array]:
    assert answers.scores is not None  # always kept for this task
    p = probabilities(answers.scores, plan)
    true = np.clip(np.where(labels == 1, p, 1.0 - p), 1e-15, 1.0)
    right = (answers.decisions == labels).mean(axis=1)
    return {
        "log_loss": -np.log(true).mean(axis=1),
        "brier": ((p - labels) ** 2).mean(axis=1),
        "hamming_accuracy": right,
    }


def _per_label(measured: Measured, side: str, labels: Array, decisions: Array, answers: Side, plan: Plan) -> None:
    assert answers.scores is not None  # always kept for this task
    areas = []
    for k, name in enumerate(plan.classes):
        truth, decided = labels[:, k], decisions[:, k]
        hits, support, alarms = int((truth & decided).sum()), int(truth.sum()), int(decided.sum())
        sweep = Sweep.of(answers.scores[:, k], truth == 1)
        pair = sweep.roc_auc(), sweep.average_precision()
        if not math.isnan(pair[0]):
            areas.append(pair)
        recall, precision = wilson(hits, support), wilson(hits, alarms)
        entry = measured.per_class.setdefault(name, {"support": support})
        entry[side] = {
            "precision": hits / max(alarms, 1),
            "recall": hits / max(support, 1),
            "f1": 2 * hits / max(alarms + support, 1),
            "recall_low": recall.low,
            "recall_high": recall.high,
            "precision_low": precision.low,
            "precision_high": precision.high,
            "roc_auc": pair[0],
            "pr_auc": pair[1],
        }
    if areas:
        measured.put(side, "roc_auc", float(np.mean([a for a, _ in areas])))
        measured.put(side, "pr_auc", float(np.mean([b for _, b in areas])))


def _label_intervals(scores: Scores, labels: Array, measured: Measured, bootstrap: Bootstrap) -> None:
    """Macro precision, recall and F1, and the areas, from sums per label."""
    count = labels.shape[1]
    zero = np.zeros(len(labels), np.int64)

    def added(matrix: Array) -> Sums:
        return np.concatenate([bootstrap.sums(zero, matrix[:, k].astype(np.float64), 1) for k in range(count)], axis=1)

    support = added(labels)
    sums = {
        side: np.concatenate([added(labels & s.decisions), added(s.decisions), support], axis=1)
        for side, s in scores.sides.items()
    }
    statistics = _count_statistics(scores.plan)
    totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
    for metric in ("precision", "recall", "f1"):
        measured.bootstrapped(metric, paired(totals, statistics[metric]))
    if count <= AUC_CLASSES:
        by_class = {
            side: {k: s.scores[:, k] for k in range(count)} for side, s in scores.sides.items() if s.scores is not None
        }
        _area_intervals({k: labels[:, k] for k in range(count)}, by_class, measured, bootstrap)


# --- numbers ------------------------------------------------------------------------------------------------------


def _regression(scores: Scores, measured: Measured, bootstrap: Bootstrap) -> None:
    labels = scores.labels.astype(np.float64).reshape(scores.n, -1)
    sums = {}
    for side, answers in scores.sides.items():
        assert answers.scores is not None  # always kept for this task
        given = answers.scores.astype(np.float64).reshape(scores.n, -1)
        if given.shape != labels.shape:
            raise InputError(
                f"the scores have {given.shape[1]} columns and the labels {labels.shape[1]}: expected as many"
            )
        known = np.asarray(np.isfinite(labels).all(axis=1) & np.isfinite(given).all(axis=1))
        if not known.any():
            continue
        y, p = labels[known], given[known]
        mae = sk.mean_absolute_error(y, p)
        measured.put(side, "mae", mae)
        measured.put(side, "rmse", float(np.sqrt(sk.mean_squared_error(y, p))))
        if len(y) > 1:
            measured.put(side, "r2", sk.r2_score(y, p))
        measured.put(side, "relative_error", mae / max(float(np.abs(y).mean()), 1e-300))
        sums[side] = _error_sums(labels, given, known, bootstrap)
    totals = {side: bootstrap.totals(mine) for side, mine in sums.items()}
    for metric, statistic in _ERRORS.items():
        measured.bootstrapped(metric, paired(totals, statistic))


def _error_sums(labels: Array, given: Array, known: Array, bootstrap: Bootstrap) -> Sums:
    """Per block: count, |error|, error², |label|, label, label²; means over columns."""
    cells = np.where(known, 0, -1)
    error = given - labels
    numbers = (np.ones(len(labels)), np.abs(error), error**2, np.abs(labels), labels, labels**2)
    return np.concatenate([bootstrap.sums(cells, v if v.ndim == 1 else v.mean(axis=1), 1) for v in numbers], axis=1)


def _r2(s: Sums) -> NDArray[np.float64]:
    spread = s[:, 5] - s[:, 4] ** 2 / np.maximum(s[:, 0], 1)
    return np.asarray(1.0 - s[:, 2] / np.maximum(spread, 1e-300))


_ERRORS: dict[str, Callable[[Sums], NDArray[np.float64]]] = {
    "mae": lambda s: np.asarray(s[:, 1] / np.maximum(s[:, 0], 1)),
    "rmse": lambda s: np.asarray(np.sqrt(s[:, 2] / np.maximum(s[:, 0], 1))),
    "relative_error": lambda s: np.asarray(s[:, 1] / np.maximum(s[:, 3], 1e-300)),
    "r2": _r2,
}


# --- the user's own -----------------------------------------------------------------------------------------------


def custom(texts: Sequence[str], scores: Scores, measured: Measured, seed: int = 0) -> None:
    """Metrics of the user: `function(labels, scores) -> float`, on both sides and with a bootstrap where that is cheap."""
    from onnxproof.subject import load_target

    for text in texts:
        function, name = load_target(text)
        if not callable(function):
            raise InputError(
                f"--metric {text} is a {type(function).__name__}; expected a function(labels, scores) -> float"
            )
        for side, answers in scores.sides.items():
            measured.put(side, name, _called(function, text, scores.labels, answers.scores))
        if scores.n <= CUSTOM_ROWS:
            measured.bootstrapped(name, _resampled(function, text, scores, seed))


def _called(function: Callable[..., Any], text: str, labels: Array, scores: Array | None) -> float:
    if scores is None:
        raise InputError(f"--metric {text}: too many classes, scores of single examples are not kept")
    try:
        return float(function(labels, scores))
    except Exception as error:
        raise InputError(f"--metric {text} raised {type(error).__name__}: {error}") from error


def _resampled(function: Callable[..., Any], text: str, scores: Scores, seed: int) -> dict[str, tuple[float, float]]:
    generator = np.random.default_rng(seed)
    replicates: dict[str, list[float]] = {side: [] for side in scores.sides}
    for _ in range(CUSTOM_REPLICATES):
        rows = generator.integers(0, scores.n, scores.n)
        for side, answers in scores.sides.items():
            assert answers.scores is not None  # _called has checked it
            replicates[side].append(_called(function, text, scores.labels[rows], answers.scores[rows]))
    values = {side: np.array(list_) for side, list_ in replicates.items()}
    ends = {side: percentile(v) for side, v in values.items()}
    if len(values) == 2:
        ends["difference"] = percentile(values["candidate"] - values["baseline"])
    return ends
