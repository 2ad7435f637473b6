"""The benchmark as a child's work: timing in one process, peak memory of each contender in a process of its own."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.errors import FindingError, TargetError
from onnxproof.latency import machine
from onnxproof.latency.bench import Bench
from onnxproof.latency.contender_factory import Field
from onnxproof.lints.refusal import refusal
from onnxproof.parity.verification import Listener
from onnxproof.pipeline.stages import Emit, fingerprint, load_subject
from onnxproof.policy.policy import Policy
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.latency import BASELINE, Latency
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.request import Job
from onnxproof.subject.mode import eval_mode
from onnxproof.subject.subject import Subject

TOLD_EVERY = 0.5
"""Seconds between two reports of progress."""
INPUTS = "inputs.pickle"


def run_bench(
    job: Job,
    artifact: Artifact,
    policy: Policy,
    emit: Emit,
    subject: Subject | None = None,
    *,
    stateful: bool = False,
    weights: str | None = None,
    folder: str | None = None,
) -> None:
    """Time every contender; emits cases, the latency record as it grows, and what is to be weighed."""
    emit({"event": "stage", "case": None, "stage": "import"})
    load_ms = None
    if subject is None:
        began = time.perf_counter()
        subject = load_subject(job)
        load_ms = (time.perf_counter() - began) * 1e3
    if weights is not None and fingerprint(subject) != weights:
        raise TargetError(f"{job.target} builds a module with other weights each time it is called")

    def partial(latency: Latency) -> None:
        emit({"event": "latency", "latency": latency.to_json()})

    listener = _listener(emit)
    try:
        bench = Bench(
            subject, artifact, job, listener, stateful=stateful, load_ms=load_ms, tell=_teller(emit), partial=partial
        )
        if folder is not None:
            _tell_weights(bench, Path(folder), emit)
        partial(bench.run())
        if bench.settings.tune:
            _tune(bench, job, policy, stateful)
            partial(bench.latency())
    except FindingError as error:
        listener.finding(refusal(error.finding, artifact, job.verify.session))


def _listener(emit: Emit) -> Listener:
    return Listener(
        finding=lambda finding: emit({"event": "finding", "finding": finding.to_json()}),
        plan=lambda cases, coverage: None,
        stage=lambda case, stage: emit({"event": "stage", "case": case, "stage": stage}),
        case=lambda result: emit({"event": "case", "case": result.to_json()}),
        outputs=lambda pairs: emit({"event": "outputs", "pairs": dict(pairs)}),
    )


def _teller(emit: Emit) -> Any:
    """Progress, but not so often that it disturbs what is timed."""
    last = [0.0]

    def tell(text: str) -> None:
        now = time.perf_counter()
        if now - last[0] > TOLD_EVERY:
            last[0] = now
            emit({"event": "stage", "case": None, "stage": text})

    return tell


def _tell_weights(bench: Bench, folder: Path, emit: Emit) -> None:
    """Leave the inputs where the processes that weigh find them."""
    points = sorted(bench.points, key=lambda point: sum(array.nbytes for array in point.inputs.values()))
    (folder / INPUTS).write_bytes(pickle.dumps([point.inputs for point in points]))
    sizes = [{"batch": point.batch, "sizes": dict(point.sizes)} for point in points]
    emit({"event": "weigh", "contenders": [c.name for c in bench.contenders], "points": sizes})


def _tune(bench: Bench, job: Job, policy: Policy, stateful: bool) -> None:
    from onnxproof.latency.tune import tune, verifier_of

    check = verifier_of(bench, job.verify, policy, stateful)
    with eval_mode(bench.verifier.subject.module):
        for point in bench.points:
            bench.tell(f"tuning {point.label}")
            bench.add_tuned(tune(bench, point, check, bench.settings.budget / 4 / len(bench.points)))


def run_weigh(job: Job, artifact: Artifact, name: str, folder: str, emit: Emit) -> None:
    """Peak memory of one contender at every size; emits it."""
    from onnxproof.latency.memory import weigh

    emit({"event": "stage", "case": None, "stage": f"weighing {name}"})
    inputs = pickle.loads((Path(folder) / INPUTS).read_bytes())
    subject = load_subject(job)
    settings: BenchSettings = job.bench or BenchSettings()
    pairs = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs, subject.shapes()).pairs
    session = machine.with_threads(job.verify.session)
    field = Field(subject, artifact, session, settings, pairs)
    own = name == BASELINE or name.startswith("torch")
    with eval_mode(subject.module):
        grown = weigh(field.makers[name], inputs, subject if own else None)
    emit({"event": "weighed", "contender": name, "bytes": grown})


def order_bench(order: Mapping[str, Any], emit: Emit) -> None:
    """`bench` as a child's order."""
    run_bench(
        order["job"],
        order["artifact"],
        order["policy"],
        emit,
        stateful=order["stateful"],
        weights=order["weights"],
        folder=order["folder"],
    )


def order_weigh(order: Mapping[str, Any], emit: Emit) -> None:
    """`weigh` as a child's order."""
    run_weigh(order["job"], order["artifact"], order["contender"], order["folder"], emit)
