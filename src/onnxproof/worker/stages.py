"""The work itself, as stages that report events. The same code runs in the caller's process and in a child."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from onnxproof.artifact.export import export
from onnxproof.artifact.file import complaint, read_artifact
from onnxproof.artifact.record import Artifact
from onnxproof.errors import FindingError, TargetError
from onnxproof.examination import examine
from onnxproof.findings import Finding
from onnxproof.job import Job
from onnxproof.subject import Subject, load_target, make_subject, resolve
from onnxproof.verification import EXACT_UP_TO, Listener, Verifier, verify

Emit = Callable[[Mapping[str, Any]], None]


def seed_everything() -> None:
    """The same random numbers in every child, so that a TARGET with random weights is the same model in each."""
    import random

    import numpy

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def fingerprint(subject: Subject) -> str:
    """A hash of all weights: two children must have built the same module."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(subject.module.state_dict().items()):
        digest.update(name.encode())
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def load_subject(job: Job) -> Subject:
    """The subject a job speaks of."""
    if job.memory is not None:
        module, inputs = job.memory
        name = type(module).__name__
    elif job.pickled is not None:
        module, inputs = torch.load(job.pickled, weights_only=False, map_location="cpu")
        name = type(module).__name__
    elif job.target is not None:
        value, name = load_target(job.target)
        module, inputs = resolve(value, name)
    else:
        raise TargetError("there is no TARGET")
    return make_subject(module, inputs, name=name, specs=job.inputs, dynamic=job.dynamic, ranges=job.ranges)


def describe_subject(subject: Subject, job: Job) -> dict[str, Any]:
    """The subject as plain data."""
    module = subject.module
    return {
        "name": subject.name,
        "target": job.target,
        "class": f"{type(module).__module__}.{type(module).__qualname__}",
        "parameters": sum(p.numel() for p in module.parameters()),
        "inputs": {
            n: {"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch.")}
            for n, t in subject.inputs.tensors.items()
        },
        "constants": {name: repr(value) for name, value in subject.inputs.constants.items()},
        "dynamic": {name: {str(d): size for d, size in dims.items()} for name, dims in subject.dynamic.items()},
        "weights": fingerprint(subject),
        "ranges": {name: [r.low, r.high] for name, r in subject.ranges.items()},
    }


def environment() -> dict[str, Any]:
    """What the answer depends on besides the model."""
    import numpy
    import onnx
    import onnxruntime

    from onnxproof import __version__

    return {
        "onnxproof": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }


def run_export(job: Job, emit: Emit, subject: Subject | None = None) -> None:
    """Examine and export (or read the given file); emits subject, findings and the artifact."""
    emit({"event": "stage", "case": None, "stage": "import"})
    subject = subject or load_subject(job)
    emit({"event": "subject", "subject": describe_subject(subject, job), "environment": environment()})

    def report(finding: Finding) -> None:
        emit({"event": "finding", "finding": finding.to_json()})

    try:
        emit({"event": "stage", "case": None, "stage": "examine"})
        if job.onnx is not None:
            artifact = read_artifact(Path(job.onnx), sourcemap=_beside(Path(job.onnx)))
            remark = complaint(Path(job.onnx))
            if remark is not None:
                report(remark)
            _examine(subject, report)
        else:
            _examine(subject, report)
            emit({"event": "stage", "case": None, "stage": "export"})
            artifact = export(subject, Path(job.out) / "model.onnx", job.export, report)
    except FindingError as error:
        report(error.finding)
        return
    emit({"event": "artifact", "artifact": artifact.to_json()})


def _examine(subject: Subject, report: Callable[[Finding], None]) -> None:
    try:
        findings = examine(subject)
    except Exception:
        return  # a module that rejects its example says so itself in the next stage, with a better message
    for finding in findings:
        report(finding)


def _beside(path: Path) -> str | None:
    side = path.with_suffix(".sourcemap.json")
    return str(side) if side.is_file() else None


def run_locate(
    job: Job,
    artifact: Artifact,
    cases: list[str],
    outputs: Mapping[str, str],
    emit: Emit,
    subject: Subject | None = None,
) -> None:
    """Look for the cause of what happened in some cases; emits one blame per case."""
    from onnxproof.blame.locate import Locator

    if artifact.bytes > EXACT_UP_TO:
        return  # every value of every node, in float64, would not fit
    emit({"event": "stage", "case": None, "stage": "locate"})
    subject = subject or load_subject(job)
    silent = Listener(lambda finding: None, lambda names: None, lambda case, stage: None, lambda result: None)
    verifier = Verifier(subject, artifact, job.verify, silent)
    verifier.calibrate()
    planned = {case.name: case for case in verifier.plan()}
    locator = Locator(verifier.subject, artifact, job.verify.session, verifier.input_pairs, outputs)
    for name in cases:
        case = planned.get(name) or planned.get(name.replace("/example/", "/normal/"))
        if case is not None:
            case = replace(case, name=name, profile="example") if "/example/" in name else case
            blame = locator.locate(verifier.make_inputs(case))
            emit({"event": "blame", "case": name, "blame": blame.to_json()})


def run_verify(
    job: Job,
    artifact: Artifact,
    done: frozenset[str],
    emit: Emit,
    *,
    stateful: bool,
    subject: Subject | None = None,
    weights: str | None = None,
) -> None:
    """Run the cases that are not done yet; emits the plan, stages, cases and findings."""
    emit({"event": "stage", "case": None, "stage": "import"})
    subject = subject or load_subject(job)
    if weights is not None and fingerprint(subject) != weights:
        raise TargetError(
            f"{job.target} builds a module with other weights each time it is called: load fixed weights, or seed the generator it uses"
        )
    listener = Listener(
        finding=lambda finding: emit({"event": "finding", "finding": finding.to_json()}),
        plan=lambda cases: emit(
            {"event": "plan", "cases": [c.name for c in cases], "unfair": [c.name for c in cases if not c.fair]}
        ),
        stage=lambda case, stage: emit({"event": "stage", "case": case, "stage": stage}),
        case=lambda result: emit({"event": "case", "case": result.to_json()}),
    )
    try:
        emit({"event": "stage", "case": None, "stage": "session"})
        verifier = Verifier(subject, artifact, job.verify, listener, stateful=stateful)
        verify(verifier, listener, done, job.verify.budget)
        emit({"event": "outputs", "pairs": dict(verifier.output_pairs)})
    except FindingError as error:
        listener.finding(error.finding)
