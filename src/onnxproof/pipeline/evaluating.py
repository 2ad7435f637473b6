"""The worker's part of an evaluation: the data set through both sides, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from onnxproof.candidates import choose_candidate
from onnxproof.cases.coverage import cover, sort_finite
from onnxproof.cases.supply import Supply
from onnxproof.data.opening import open_source
from onnxproof.errors import FindingError, InputError, UserError
from onnxproof.findings import found
from onnxproof.lints.refusal import explain_refusal
from onnxproof.parity.comparison import classify_dtype
from onnxproof.parity.declared import measure_cost
from onnxproof.pipeline.events import Compared, Emit, Entered, Measured, Observed
from onnxproof.pipeline.generating import run_generate
from onnxproof.pipeline.sharding import collect_scores
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.codec import settle
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.search import Coverage
from onnxproof.proof.traps import PreprocessingFacts, Traps
from onnxproof.quality.accumulate import Scores
from onnxproof.quality.assemble import assemble
from onnxproof.quality.engine import Engine
from onnxproof.quality.flips import find_changed
from onnxproof.quality.preprocessing import COMPARED_ROWS
from onnxproof.quality.rows import Rows
from onnxproof.quality.task import contradicts
from onnxproof.quality.traps import Training, find_leaks, look_at_inputs
from onnxproof.request.request import Request
from onnxproof.tensors.arrays import Array


def run_evaluate(emit: Emit, request: Request, artifact: Artifact, *, stateful: bool, shop: Workshop) -> None:
    """Evaluate the data set; emits progress, findings and the quality."""
    emit(Entered("evaluate"))
    settings = request.evaluate
    assert settings is not None  # the stage is wanted only then
    subject = shop.load(request)
    try:
        if settings.task == "generate":
            run_generate(emit, request, artifact, stateful=stateful, shop=shop)
            return
        engine = Engine(subject, artifact, request.verify.session, settings, stateful=stateful)
        placement = engine.session.placement()
        if placement is not None:
            emit(Observed(placement))
        _evaluate(request, engine, stateful, emit)
        for finding in engine.findings:
            emit(Observed(finding))
    except FindingError as error:
        emit(
            Observed(
                explain_refusal(
                    error.finding, artifact, choose_candidate(request.verify.session), request.verify.session
                )
            )
        )
    except UserError as error:
        if settings.required:
            raise
        # `prove --data` was asked for parity: labels that nobody understands do not stop it.
        emit(Observed(found("OX515", f"the labels of the data were not evaluated: {error}")))


def _evaluate(request: Request, engine: Engine, stateful: bool, emit: Emit) -> None:
    settings = engine.settings
    rows = engine.open(open_source(settings.data, part=settings.part))
    if not rows.labelled:
        if not settings.required:
            return
        precision = engine.artifact.precision
        if precision is not None and precision.declared:
            for result in _count_changes(engine, rows):
                emit(Compared(result))
            return
        raise InputError(
            f"--data {settings.data} has no labels: expected a field labels, y, label or target, or --labels NAME; "
            f"it has {', '.join(rows.columns)}. Without labels, `prove --data` counts the decisions that change"
        )
    preprocessing = _compare_preprocessing(engine, rows)
    plan = engine.plan(rows, rows.all_labels())
    if not plan.by_row and (settings.metrics or settings.train_data):
        raise InputError(f"--metric and --train-data are for one answer per example; the task is {plan.task}")
    if plan.boxes is not None and not plan.boxes.batched:
        request, engine.batch = replace(request, evaluate=replace(settings, batch_size=1)), 1
    scores, lost, shared = collect_scores(request, engine, rows, plan, stateful, emit)
    if any(s.scores is not None and contradicts(s.scores, plan) for n, s in scores.sides.items() if n == "baseline"):
        plan = replace(plan, scale="logit")  # the first rows looked like probabilities, later ones are none
        scores, lost, shared = collect_scores(request, engine, rows, plan, stateful, emit)
    if not scores.n:
        raise InputError("--data has no rows")
    for finding in lost:
        emit(Observed(finding))
    emit(Entered("measure"))
    if preprocessing is not None and "served" in scores.columns:
        preprocessing = replace(preprocessing, **_measure_served(scores))
    quality = assemble(
        scores,
        settings,
        traps=_find_traps(request, engine, rows, scores),
        preprocessing=preprocessing,
        rows=rows.source.rows,
        workers=shared[0],
        where=shared[1],
        baseline=engine.subject.baseline,
    )
    emit(Measured(settle(quality)))


def _count_changes(engine: Engine, rows: Rows) -> Iterator[CaseResult]:
    """Without labels: what a lower precision changes in the answers for all of the data."""
    for batch in rows.batches(0, engine.batch):
        right, lower = engine.baseline(batch.inputs), engine.candidate(batch.inputs)
        pairs = [(name, array, lower[engine.graph_output(name)]) for name, array in right.items()]
        outputs = tuple(_priced(*pair) for pair in pairs)
        last = batch.start + batch.rows - 1
        yield CaseResult(f"data/rows={batch.start}-{last}", "data", True, "compared", outputs=outputs)


def _priced(name: str, right: Array, lower: Array) -> Comparison:
    """Only what the precision changes: whether it is computed right is for the cases of `prove` to say."""
    kind, dtypes, shapes = classify_dtype(right), (right.dtype.name,) * 2, (right.shape,) * 2
    return Comparison(name, kind, *dtypes, *shapes, right.size, right.size, cost=measure_cost(right, lower))


def _find_traps(request: Request, engine: Engine, rows: Rows, scores: Scores) -> Traps:
    train_data = engine.settings.train_data
    dtypes = set(rows.dtypes.values())
    traps = Traps(
        look_at_inputs(scores, engine.examples, engine.subject.ranges, dtypes.pop() if len(dtypes) == 1 else None),
        find_leaks(scores),
        _measure_coverage(request, engine, scores),
    )
    if train_data is None:
        return traps
    train = engine.open(open_source(train_data, "--train-data"), training=True)
    try:
        return replace(traps, training=Training(engine, train, scores).compare())
    except FindingError as error:
        raise FindingError(replace(error.finding, message=f"--train-data: {error.finding.message}")) from error


def _measure_served(scores: Scores) -> dict[str, Any]:
    """Decisions that the other preprocessing flips, and what they cost."""
    served, candidate = scores.columns["served"], scores.sides["candidate"].decisions
    if not scores.plan.classification:
        apart = np.abs(served.astype(np.float64) - candidate.astype(np.float64))
        return {"served_difference": {"max_abs": float(apart.max()), "mean_abs": float(apart.mean())}}
    flipped = find_changed(served, candidate)
    right = {name: ~find_changed(d, scores.labels) for name, d in (("served", served), ("candidate", candidate))}
    return {
        "flips": int(flipped.sum()),
        "of": len(flipped),
        "rows": tuple(np.flatnonzero(flipped)[:5].tolist()),
        "accuracy": {name: float(values.mean()) for name, values in right.items()},
    }


def _compare_preprocessing(engine: Engine, rows: Rows) -> PreprocessingFacts | None:
    """Where the two pipelines part; one whose result has another shape cannot be run any further."""
    if not engine.preprocessing.compares:
        return None
    table = next(rows.source.read(0, COMPARED_ROWS, COMPARED_ROWS), None)
    if table is None:
        return None
    told = engine.preprocessing.compare(rows.raw(table))
    try:
        served = engine.preprocessing.serving(rows.raw({n: a[:2] for n, a in table.items()}))
        if served is not None:
            rows.to_inputs(served)
    except (FindingError, UserError) as error:
        engine.preprocessing.drop_serving()
        return replace(told, refused=str(error))
    return told


def _measure_coverage(request: Request, engine: Engine, scores: Scores) -> dict[str, Coverage]:
    """How much of the data lies where the generated parity cases are; per input."""

    if sum(a.size for a in engine.examples.values()) > 200_000:
        return {}  # making the cases would cost more than the answer is worth
    try:
        supply = Supply(engine.subject, engine.artifact, replace(request.verify, data=None, counterexamples=None))
        planned = [c for c in supply.plan() if c.fair and c.profile != "kept"]
        made = [supply.make_inputs(case) for case in planned[:40]]
    except (UserError, ValueError):
        return {}  # a subject for which no case can be made; `prove` says why
    return {
        d.name: cover(scores.columns[f"sample/{d.name}"], sort_finite(inputs[d.name] for inputs in made))
        for d in supply.domains
        if d.is_float and d.shape and f"sample/{d.name}" in scores.columns
    }
