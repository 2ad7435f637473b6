"""Opinions about the data: facts about inputs and their preparation → findings."""

from __future__ import annotations

import math
from collections.abc import Iterable

from onnxproof.findings import Finding, Severity, found
from onnxproof.proof.codec import to_plain
from onnxproof.proof.quality import Quality
from onnxproof.proof.traps import InputFacts, Ring, TrainingFacts

# Strength from which a single feature gives the label away.
LEAK = 0.99
# By how much it must be stronger than the next one; several such features are a task that is easy.
LEAK_LEAD = 0.05
GAP = 0.1
SHIFT, LARGE_SHIFT = 0.1, 0.3
SCALE = 20.0
COVERED = 0.8


def judge_data(q: Quality) -> list[Finding]:
    """What is to be said about the data."""
    findings: list[Finding] = []
    for name, facts in q.traps.inputs.items():
        findings += [*_judge_values(name, facts), *_judge_scale(q, name, facts)]
    findings += [*_judge_leaks(q), *_judge_coverage(q)]
    training = q.traps.training
    if training is not None:
        findings += [
            *_judge_duplicates(training),
            *_judge_gap(q, training),
            *_judge_shift(training),
            *_judge_channels(q, training),
        ]
    return [*findings, *_judge_preprocessing(q)]


def _judge_values(name: str, f: InputFacts) -> Iterable[Finding]:
    if f.nonfinite_rows:
        message = f"{f.nonfinite_rows} of {f.rows} rows of {name} hold NaN or infinities"
        yield found("OX604", message, evidence={"input": name, **to_plain(f)})
    constant, features = f.constant_count, f.features
    if features and constant == features and f.rows > 1:
        # A mask or a type that no row needs is the same everywhere; numbers that are say that something was lost.
        severity: Severity | None = None if f.dtype.startswith(("float", "bfloat")) else "note"
        yield found("OX605", f"{name} is the same in every row", severity=severity, evidence={"input": name})
    elif constant and f.constant and f.rank == 2:
        told = ", ".join(map(str, f.constant[:5]))
        message = f"{constant} of {features} columns of {name} never change: {told}"
        yield found("OX605", message, severity="note", evidence={"input": name, "columns": to_plain(f.constant)})
    if f.declared and f.low is not None and f.high is not None and (f.low < f.declared[0] or f.high > f.declared[1]):
        message = f"{name} goes from {f.low:.4g} to {f.high:.4g}; declared is {f.declared[0]:g} to {f.declared[1]:g}"
        evidence = {"input": name, "low": f.low, "high": f.high, "declared": list(f.declared)}
        yield found("OX606", message, evidence=evidence)
    if f.image and str(f.data_dtype).startswith(("uint", "int")) and f.dtype.startswith("float"):
        message = f"the data of {name} are {f.data_dtype}, the input takes {f.dtype}"
        yield found("OX615", message, evidence={"input": name})


def _judge_scale(q: Quality, name: str, f: InputFacts) -> Iterable[Finding]:
    """0–255 against 0–1: held against the training data, or for images against the example."""
    if f.low is None:
        return
    shift = [s for s in q.traps.training.shift if s.input == name] if q.traps.training is not None else []
    reference = shift[0].train_magnitude if shift else _measure_magnitude(f.example_low, f.example_high)
    if not reference or not (shift or f.image):
        return
    own = _measure_magnitude(f.low, f.high)
    larger = own / reference >= SCALE and (bool(shift) or 30 < own <= 255)
    smaller = reference / max(own, 1e-30) >= SCALE and (bool(shift) or reference > 30)
    if larger or smaller:
        source = "the training data" if shift else "the example inputs"
        message = f"{name} reaches {own:.4g} and {source} {reference:.4g}: another scale (0–255 against 0–1?)"
        severity: Severity = "note" if not shift and _good(q) else "review"
        yield found("OX607", message, severity=severity, evidence={"input": name, "data": own, "reference": reference})


def _measure_magnitude(low: float | None, high: float | None) -> float:
    return max(abs(low or 0.0), abs(high or 0.0))


def _good(q: Quality) -> bool:
    """Whether the model makes sense of the data as they are."""
    return max(q.candidate.get("accuracy", 0.0), q.candidate.get("r2", 0.0)) >= 0.8


def _judge_leaks(q: Quality) -> Iterable[Finding]:
    for leak in (leak for leak in q.traps.leaks if leak.strength >= LEAK):
        alone = leak.strength - leak.next > LEAK_LEAD
        message = f"value {leak.feature} of {leak.input} alone tells the label ({leak.strength:.1%} sorted by it)"
        if not alone:
            message += "; others do too, so the task may just be easy"
        yield found("OX610", message, severity="review" if alone else "note", evidence=to_plain(leak))


def _judge_coverage(q: Quality) -> Iterable[Finding]:
    for name, cover in q.traps.coverage.items():
        if cover.share < COVERED:
            message = f"only {cover.share:.0%} of {name} lies where generated parity cases have been"
            yield found("OX609", message, evidence={"input": name, **to_plain(cover)})


def exceeds_chance(count: int, of: int, share: float, smoothing: float) -> bool:
    """Whether a count is more than twice what a share makes natural, and more than chance."""
    expected = 2.0 * share * of + smoothing * of
    return count > expected + 4.0 * math.sqrt(expected) + (1.0 if share else 0.0) and count > 0


def _judge_duplicates(t: TrainingFacts) -> Iterable[Finding]:
    exact, near, ids = t.duplicates, t.near, t.ids
    if exceeds_chance(exact.count, exact.of, exact.train_twins or 0.0, 0.0):
        share = f"{exact.count} of {exact.of} test rows ({exact.count / exact.of:.1%})"
        yield found("OX601", f"{share} are training rows, such as row {exact.rows[0]}", evidence=to_plain(exact))
    closest = near and next((ring for ring in near.by_radius if _too_near(ring, near.probes)), None)
    if near and closest:
        share = f"{closest.count} of {closest.of} test rows looked at"
        distance = f"{closest.radius:g} times the usual distance"
        message = f"{share} are nearer to a training row than {distance}, such as row {near.rows[0]}"
        yield found("OX602", message, evidence=to_plain(near))
    if ids is not None and ids.count:
        message = f"{ids.count} of {ids.of} ids are in the training data too, such as that of row {ids.rows[0]}"
        yield found("OX603", message, evidence=to_plain(ids))


def _too_near(ring: Ring, probes: int) -> bool:
    return ring.count > 1 and exceeds_chance(ring.count, ring.of, ring.train_share, 0.25 / max(probes, 1))


def _judge_gap(q: Quality, t: TrainingFacts) -> Iterable[Finding]:
    gap = t.gap
    test = q.value(gap.metric) if gap is not None else None
    if gap is None or test is None:
        return
    if gap.metric == "mae":
        wide = test > 2.0 * gap.train and gap.train >= 0
    else:
        interval = q.intervals.get("accuracy")
        _, high = (interval and interval.candidate) or (0.0, 1.0)
        wide = gap.train - test > GAP and (gap.low or 0.0) > high
    if wide:
        metric = f"{gap.metric} is {gap.train:.4g} on the training data and {test:.4g} on the test data"
        message = f"{metric}: learnt by heart, or the test data are prepared differently"
        yield found("OX611", message, evidence={**to_plain(gap), "test": test})


def _judge_shift(t: TrainingFacts) -> Iterable[Finding]:
    for s in t.shift:
        if s.distance > max(SHIFT, s.critical):
            message = (
                f"value {s.feature} of {s.input} is distributed differently in training and test data (distance {s.distance:.2f}); "
                f"{s.features} of {s.of} values differ"
            )
            severity: Severity = "review" if s.distance > LARGE_SHIFT else "note"
            yield found("OX612", message, severity=severity, evidence=to_plain(s))


def _judge_channels(q: Quality, t: TrainingFacts) -> Iterable[Finding]:
    for name, train in t.channels.items():
        facts = q.traps.inputs.get(name)
        test = (facts and facts.channels) or ()
        if len(test) != 3:
            continue
        as_is, swapped = (sum(abs(a - b) for a, b in zip(one, train, strict=True)) for one in (test, test[::-1]))
        if swapped < 0.25 * as_is and as_is > 0.5 * (max(train) - min(train)):
            message = f"the channels of {name} fit the training data in the opposite order only: RGB against BGR"
            yield found("OX614", message, evidence={"input": name, "test": list(test), "train": list(train)})


def _judge_preprocessing(q: Quality) -> Iterable[Finding]:
    p = q.preprocessing
    if p is None or p.same or p.step is None:
        return
    training, serving = ((p.names or {}).get(side, "") for side in ("training", "serving"))
    step = training if training == serving else f"{training} / {serving}"
    place = f"step {p.step + 1} ({step})" + (f", field {p.field}" if p.field is not None else "")
    much = p.what if p.max_abs is None else f"up to {p.max_abs:.4g} in {p.rows_differing} of {p.compared} rows"
    message = f"training and serving part in {place}: {much}{f'; {p.hint}' if p.hint else ''}"
    if p.flips is not None:
        message += f"; {p.flips} of {p.of} decisions change"
    elif p.refused is not None:
        message += "; the model cannot take it"
    severity: Severity = "block" if p.flips or p.refused is not None else "review"
    yield found("OX613", message, severity=severity, evidence=to_plain(p))
