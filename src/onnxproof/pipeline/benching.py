"""The benchmark as a child's work: timing in one process, peak memory of each contender in a process of its own."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.candidates import choose_candidate
from onnxproof.errors import FindingError
from onnxproof.latency import machine
from onnxproof.latency.bench import Bench
from onnxproof.latency.contender_factory import Field
from onnxproof.lints.refusal import explain_refusal
from onnxproof.pipeline.events import Emit, Entered, Timed, ToWeigh, Weighed
from onnxproof.pipeline.verifying import make_listener
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.latency import BASELINE
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy
from onnxproof.subject.mode import enter_eval

# Seconds between two reports of progress.
TOLD_EVERY = 0.5
INPUTS = "inputs.pickle"


def run_bench(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    policy: Policy,
    *,
    stateful: bool,
    weights: str | None = None,
    folder: str | None = None,
    shop: Workshop,
) -> None:
    """Time every contender; emits cases, the latency record as it grows, and what is to be weighed."""
    emit(Entered("import"))
    loaded, began = shop.subject is not None, time.perf_counter()
    subject = shop.load(request, weights)
    load_ms = None if loaded else (time.perf_counter() - began) * 1e3
    listener = replace(make_listener(emit), plan=lambda cases, coverage: None)
    try:
        bench = Bench(
            subject,
            artifact,
            request,
            listener,
            stateful=stateful,
            load_ms=load_ms,
            tell=_make_teller(emit),
            partial=lambda latency: emit(Timed(latency)),
        )
        if folder is not None:
            _tell_weights(bench, Path(folder), emit)
        emit(Timed(bench.run()))
        if bench.settings.tune:
            _tune(bench, request, policy, stateful)
            emit(Timed(bench.latency()))
    except FindingError as error:
        listener.finding(
            explain_refusal(error.finding, artifact, choose_candidate(request.verify.session), request.verify.session)
        )


def _make_teller(emit: Emit) -> Any:
    """Progress, but not so often that it disturbs what is timed."""
    last = [0.0]

    def tell(text: str) -> None:
        now = time.perf_counter()
        if now - last[0] > TOLD_EVERY:
            last[0] = now
            emit(Entered(text))

    return tell


def _tell_weights(bench: Bench, folder: Path, emit: Emit) -> None:
    """Leave the inputs where the processes that weigh find them."""
    # A peak only grows: a small size after a large one would weigh as much.
    points = sorted(bench.points, key=lambda point: sum(array.nbytes for array in point.inputs.values()))
    (folder / INPUTS).write_bytes(pickle.dumps([point.inputs for point in points]))
    sizes = [{"batch": point.batch, "sizes": dict(point.sizes)} for point in points]
    emit(ToWeigh(list(bench.contenders), sizes))


def _tune(bench: Bench, request: Request, policy: Policy, stateful: bool) -> None:
    from onnxproof.latency.tune import make_verifier, tune

    check = make_verifier(bench, request.verify, policy, stateful)
    with enter_eval(bench.verifier.subject.module):
        for point in bench.points:
            bench.tell(f"tuning {point.label}")
            bench.tuned += tune(bench, point, check, bench.settings.budget / 4 / len(bench.points))


def run_weigh(emit: Emit, request: Request, artifact: Artifact, contender: str, folder: str, *, shop: Workshop) -> None:
    """Peak memory of one contender at every size; emits it."""
    from onnxproof.latency.memory import weigh

    emit(Entered(f"weighing {contender}"))
    inputs = pickle.loads((Path(folder) / INPUTS).read_bytes())
    subject = shop.load(request)
    settings: BenchSettings = request.bench or BenchSettings()
    pairs = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs, subject.shapes()).pairs
    session = machine.set_threads(request.verify.session)
    field = Field(subject, artifact, choose_candidate(session), session, settings, pairs)
    own = contender == BASELINE or contender.startswith("torch")
    with enter_eval(subject.module):
        grown = weigh(field.makers[contender], inputs, subject if own else None)
    emit(Weighed(contender, grown))
