"""The plan of an evaluation from what a module answers and what the labels are: the task, the output, the classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from onnxproof.errors import InputError, list_names
from onnxproof.parity.boxes import find_boxes
from onnxproof.quality.task import IGNORED, Plan, refuse_labels, to_matrix
from onnxproof.request.evaluation import TASKS, EvaluateSettings
from onnxproof.tensors.arrays import Array

# Columns of scores up to which all of them are kept; of more, only what accuracy, log-loss and calibration need.
KEPT_COLUMNS = 256


def make_plan(outputs: Mapping[str, Array], labels: Array, settings: EvaluateSettings) -> Plan:
    """The plan from the baseline's outputs on some rows and as many labels as are known."""
    if settings.task is not None and settings.task not in TASKS:
        raise InputError(f"--task {settings.task!r}: expected one of {', '.join(TASKS)}")
    boxed = labels.ndim == 3 and labels.shape[2] == 5
    if settings.task == "detection" or (boxed and settings.task is None and find_boxes(outputs, None) is not None):
        return _plan_boxes(outputs, labels, settings)
    if (formed := _find_formed(outputs, labels, settings)) is not None:
        return formed
    if (placed := _find_places(outputs, labels, settings)) is not None:
        return _plan_places(placed, outputs[placed], labels, settings)
    labels = _drop_missing(labels)
    if not len(labels):
        raise InputError("no example of the data has a label: all of them are missing (NaN or empty)")
    name = _choose_output(outputs, labels, settings)
    scores = outputs[name]
    if scores.dtype.kind in "iub":
        return _check_plan(_plan_decisions(name, scores, labels, settings), settings)
    columns = to_matrix(scores).shape[1]
    apart = columns > 2 and labels.ndim == 1 and _is_embedding(name)
    task = settings.task or ("embedding" if apart else infer_task(scores, labels))
    scale = _guess_scale(task, to_matrix(scores))
    if task in ("regression", "custom", "embedding"):
        return Plan(task, name, "value", columns)
    if task == "multilabel":
        if columns < 2 or labels.ndim < 2 or labels.shape[1] < 2:
            raise InputError(
                f"--task multilabel: the labels have the shape {list(labels.shape)} and the output {name} {columns} columns; "
                "expected several of both, one for each label"
            )
        names = _name_classes(settings, range(columns))
        return _check_plan(Plan(task, name, scale, columns, names, (0, 1), threshold=settings.threshold), settings)
    plan = Plan(task, name, scale, columns, threshold=settings.threshold, keep_scores=columns <= KEPT_COLUMNS)
    return _check_plan(_add_classes(plan, labels, settings), settings)


def _plan_boxes(outputs: Mapping[str, Array], labels: Array, settings: EvaluateSettings) -> Plan:
    """Sets of boxes; `labels`: rows of corners and class, with a class below zero where there is none."""
    names = find_boxes(outputs, None)
    if names is None or labels.ndim != 3 or labels.shape[2] != 5:
        told = ", ".join(f"{name} {list(v.shape)} {v.dtype}" for name, v in outputs.items())
        raise InputError(
            "--task detection: expected data with boxes (images, most, 4) and labels (images, most), and outputs with boxes (N, 4) or "
            f"(batch, N, 4), scores (and labels) for each; the labels have the shape {list(labels.shape)} and the outputs are {told}"
        )
    columns = outputs[names.scores].shape[-1] if outputs[names.scores].ndim > outputs[names.boxes].ndim - 1 else 0
    highest = int(labels[..., 4].max(initial=-1))
    # A class for nothing is the last one: labels that name it, or as many names as columns, say that there is none.
    background = names.background and highest < columns - 1 and len(settings.classes) != columns
    count = max(highest + 1, columns - background, len(settings.classes))
    names = replace(names, background=background, layout=settings.box_layout or names.layout)
    return Plan(
        "detection", names.boxes, "value", 4, _name_classes(settings, range(count)), tuple(range(count)), boxes=names
    )


POINTS, RANKS = ("keypoint", "landmark", "joint", "pose"), ("rank", "relevance")


def _find_formed(outputs: Mapping[str, Array], labels: Array, settings: EvaluateSettings) -> Plan | None:
    """Points of figures, or scores that order candidates, where asked for or where an output's name and the labels say so."""
    mine = {n: a for n, a in outputs.items() if settings.output in (None, n) and a.dtype.kind == "f"}
    pointed = [n for n, a in {**mine, "": labels}.items() if a.ndim in (3, 4) and a.shape[-1] in (2, 3)]
    points = [n for n in pointed if n and "" in pointed and mine[n].shape[-2] == labels.shape[-2]]
    graded = labels.ndim == 2 and _whole(labels)
    ranks = [n for n, a in mine.items() if graded and a.ndim == 2 and a.shape[1:] == labels.shape[1:]]
    for task, names, words in (("keypoints", points, POINTS), ("ranking", ranks, RANKS)):
        named = [name for name in names if any(word in name.lower() for word in words)]
        if settings.task == task and not names:
            wanted = "(…, points, 2 or 3) of both" if points is names else "a whole number for each score of a query"
            forms = f"the labels are {list(labels.shape)}, the outputs {[list(a.shape) for a in outputs.values()]}"
            raise InputError(f"--task {task}: expected {wanted}; {forms}")
        if settings.task == task or (settings.task is None and named and not settings.metrics):
            form = mine[name := (named or names)[0]].shape[1:]
            return Plan(task, name, "value", int(np.prod(form)), size=form)
    return None


def _find_places(outputs: Mapping[str, Array], labels: Array, settings: EvaluateSettings) -> str | None:
    """The output with scores, or class numbers, for every place that has a label; None where labels are of examples."""
    asked = settings.task in ("segmentation", "tokens")
    if labels.ndim < 2 or not _whole(labels) or not (asked or (settings.task is None and not settings.metrics)):
        return None
    mine = {name: array for name, array in outputs.items() if settings.output in (None, name)}
    if not asked and any(a.shape[1:] == labels.shape[1:] and a.dtype.kind == "f" for a in mine.values()):
        return None  # a score for each label
    for name, array in mine.items():
        scores = array.dtype.kind == "f" and array.ndim == labels.ndim + 1
        if scores and labels.shape[1] > 1 and (labels.ndim > 2 or array.shape[1] == labels.shape[1]):
            return name
        if array.dtype.kind in "iu" and array.shape[1:] == labels.shape[1:] and labels.ndim > 2:
            return name
    return None


def _plan_places(name: str, scores: Array, labels: Array, settings: EvaluateSettings) -> Plan:
    task = settings.task or ("segmentation" if labels.ndim > 2 else "tokens")
    scale = "decision" if scores.dtype.kind in "iu" else "logit"
    known = labels[~np.isin(labels, IGNORED)]
    axis = 1 if task == "segmentation" else scores.ndim - 1
    count = scores.shape[axis] if scale == "logit" else int(max(scores.max(), known.max(initial=0))) + 1
    refuse_labels(
        known[(known < 0) | (known >= count)].tolist(), Plan(task, name, scale, count, labels=tuple(range(count)))
    )
    places = scores.shape[1:] if scale == "decision" else tuple(np.delete(scores.shape, (0, axis)).tolist())
    size = () if places == labels.shape[1:] else labels.shape[1:]
    if size and (task != "segmentation" or scale == "decision" or len(size) != 2):
        raise InputError(
            f"the output {name} has places {list(places)} for each example and the labels {list(size)}: expected as many"
        )
    classes = _name_classes(settings, range(count))
    return Plan(task, name, scale, count, classes, tuple(range(count)), keep_scores=False, axis=axis, size=size)


def _drop_missing(labels: Array) -> Array:
    """The labels that are there."""
    if labels.dtype.kind == "f":
        return np.asarray(labels[np.isfinite(to_matrix(labels)).all(axis=1)])
    if labels.dtype.kind in "OU" and labels.ndim == 1:
        there = [value is not None and value == value and value != "" for value in labels.tolist()]
        return np.asarray(labels[np.array(there, bool)])
    return labels


def infer_task(scores: Array, labels: Array) -> str:
    """The task that scores of this shape and labels of these values make."""
    columns = to_matrix(scores).shape[1]
    if scores.ndim > 2 and columns > 1 and labels.shape != scores.shape:
        return "custom"
    if labels.ndim == 2 and labels.shape[1] > 1:
        if not _whole(labels) or not np.isin(labels, (0, 1)).all():
            return "regression"
        return "multiclass" if (labels.sum(axis=1) == 1).all() and labels.shape[1] == columns else "multilabel"
    flat = labels.reshape(len(labels))
    if flat.dtype.kind not in "fiub":
        return "binary" if columns <= 2 else "multiclass"
    if columns == 1:
        return "binary" if len(np.unique(flat)) <= 2 and _whole(flat) else "regression"
    return "regression" if not _whole(flat) else "binary" if columns == 2 else "multiclass"


def _choose_output(outputs: Mapping[str, Array], labels: Array, settings: EvaluateSettings) -> str:
    vectors = [name for name, array in outputs.items() if array.ndim == 2 and array.dtype.kind == "f"]
    if settings.task == "embedding" and settings.output is None and vectors:
        return next((name for name in vectors if _is_embedding(name)), vectors[0])
    if settings.output is not None:
        if settings.output not in outputs:
            raise InputError(f"--output: the model has no output {settings.output!r}; it has {list_names(outputs)}")
        return settings.output
    rows = next((len(v) for v in outputs.values() if v.ndim), 0)
    fitting = {name: v for name, v in outputs.items() if v.ndim and len(v) == rows and v.ndim <= 2}
    misfits = {name: _measure_misfit(v, labels) for name, v in fitting.items() if v.dtype.kind == "f"}
    floats = {name: misfit for name, misfit in misfits.items() if misfit is not None}
    whole = [name for name, v in fitting.items() if v.dtype.kind in "iub" and v.size == rows]
    if floats or whole:
        return min(floats, key=floats.__getitem__) if floats else whole[0]
    if settings.metrics or settings.task == "custom":
        return next(name for name, v in outputs.items() if v.ndim)
    told = ", ".join(f"{name} {list(v.shape)} {v.dtype}" for name, v in outputs.items())
    raise InputError(
        f"no output of the model looks like scores for labels of shape {list(labels.shape)}; its outputs are {told}. "
        "Name one with --output, or give a custom metric with --metric file.py:function"
    )


def _is_embedding(name: str) -> bool:
    return any(word in name.lower() for word in ("embed", "pooler_output"))


def _measure_misfit(scores: Array, labels: Array) -> int | None:
    """0 for as many columns as the labels have classes (or values), more where an output is less likely to be the scores.

    None where it cannot be: other columns than the labels, or several for labels that are numbers.
    """
    columns = to_matrix(scores).shape[1]
    if labels.ndim == 2 and labels.shape[1] > 1:
        return 0 if columns == labels.shape[1] else None
    flat = labels.reshape(len(labels))
    if flat.dtype.kind == "f" and not _whole(flat):
        return columns - 1 if columns <= 2 else None
    values = np.unique(flat)
    classes = len(values)
    if flat.dtype.kind in "fiub" and values.size and values[0] >= 0:
        classes = max(classes, int(values[-1]) + 1)
    if classes <= 2:
        return int(columns > 2)
    return 0 if columns == classes else 1 if columns > classes else 2


def _plan_decisions(name: str, scores: Array, labels: Array, settings: EvaluateSettings) -> Plan:
    """A model that answers with class numbers: decisions without scores."""
    flat = labels.reshape(len(labels))
    if settings.task == "regression" or not (_whole(flat) or flat.dtype.kind not in "fiub"):
        return Plan("regression", name, "value", 1)
    codes = flat.astype(np.int64) if flat.dtype.kind in "fiub" else np.arange(len(np.unique(flat)))
    values = tuple(range(int(max(scores.max(), codes.max())) + 1))
    names = _name_classes(settings, values)
    task = settings.task or ("binary" if len(values) <= 2 else "multiclass")
    return Plan(task, name, "decision", len(values), names, values)


def _guess_scale(task: str, scores: Array) -> str:
    """Probabilities lie between 0 and 1 (and rows of classes sum to 1); all else is a logit."""
    finite = scores[np.isfinite(scores)]
    if task in ("regression", "custom") or not finite.size:
        return "value" if task in ("regression", "custom") else "logit"
    inside = bool((finite >= 0).all() and (finite <= 1 + 1e-6).all())
    if task == "multilabel" or scores.shape[1] == 1:
        return "probability" if inside else "logit"
    if inside and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3):
        return "probability"
    if (finite <= 1e-6).all() and np.allclose(np.exp(scores.astype(np.float64)).sum(axis=1), 1.0, atol=1e-3):
        return "log-probability"
    return "logit"


def _add_classes(plan: Plan, labels: Array, settings: EvaluateSettings) -> Plan:
    """Label values ↔ columns: by number where they are column numbers, else in sorted order."""
    count = 2 if plan.task == "binary" else plan.columns
    if plan.task == "multiclass" and count < 2:
        raise InputError(f"--task multiclass: the output {plan.output} has one column; expected one for each class")
    if plan.columns > 2 and plan.task == "binary":
        raise InputError(f"--task binary: the output {plan.output} has {plan.columns} columns, expected one or two")
    numbered = replace(plan, classes=_name_classes(settings, range(count)), labels=tuple(range(count)))
    if labels.ndim == 2 and labels.shape[1] > 1:
        return numbered
    flat = labels.reshape(len(labels))
    numeric = flat.dtype.kind in "fiub"
    values = [v for v in np.unique(flat).tolist() if v == v]
    if settings.classes and not numeric and set(values) <= set(settings.classes):
        return replace(plan, classes=settings.classes, labels=settings.classes)
    if numeric and all(float(v).is_integer() and 0 <= v < count for v in values):
        return numbered
    if len(values) > count or (numeric and not _whole(flat)):
        raise InputError(
            f"the labels have {len(values)} values ({list_names(values[:6])}, …) and the output {plan.output} has {count} classes; "
            "choose another column with --labels or another output with --output, or give --task"
        )
    if len(values) < count:
        raise InputError(
            f"the labels are {list_names(values[:10])} and the output {plan.output} has {count} classes: which is which? "
            "Give all names in the order of the columns with --classes A,B,C"
        )
    named = replace(plan, classes=_name_classes(settings, values), labels=tuple(values))
    if settings.classes or numeric:
        return named
    if plan.columns == 1 and settings.positive in values:  # one score: it speaks for the class that was called positive
        values = [value for value in values if value != settings.positive] + [settings.positive]
        return replace(plan, classes=tuple(values), labels=tuple(values))
    return replace(named, guessed=True)


def _name_classes(settings: EvaluateSettings, values: Iterable[Any]) -> tuple[str, ...]:
    """The names that the user gave the classes, or their values."""
    return tuple(settings.classes) or tuple(map(str, values))


def _check_plan(plan: Plan, settings: EvaluateSettings) -> Plan:
    if settings.classes and len(settings.classes) != len(plan.classes):
        raise InputError(f"--classes names {len(settings.classes)} classes, and there are {len(plan.classes)}")
    if len(set(plan.classes)) != len(plan.classes):
        raise InputError(f"--classes: names must differ, got {list_names(plan.classes)}")
    if settings.positive is not None:
        texts = [str(v) for v in plan.labels]
        place = [i for i, name in enumerate(plan.classes) if settings.positive in (name, texts[i])]
        if plan.task != "binary" or not place:
            raise InputError(
                f"--positive {settings.positive!r}: expected one of two classes, and the classes are {list_names(plan.classes)} ({plan.task})"
            )
        plan = replace(plan, positive=place[0])
    if plan.threshold is not None and (plan.task == "multiclass" or plan.scale == "decision"):
        raise InputError(f"--threshold needs binary or multi-label scores; the task is {plan.task} ({plan.scale})")
    return plan


def _whole(values: Array) -> bool:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return values.dtype.kind in "iub" or (values.dtype.kind == "f" and bool((finite == np.round(finite)).all()))
