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
from onnxproof.artifact.file import read_artifact
from onnxproof.cases.plan import Case
from onnxproof.errors import FindingError, TargetError
from onnxproof.findings import Finding, found
from onnxproof.graph.view import Graph
from onnxproof.lints.graph import lint_content
from onnxproof.lints.module import lint_module
from onnxproof.lints.refusal import refusal
from onnxproof.parity.verification import Listener, Verifier, verify
from onnxproof.pipeline.unexplained import bundled
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Job
from onnxproof.search.look import Look
from onnxproof.subject.examination import examine
from onnxproof.subject.subject import Subject, load_target, make_subject, resolve

Emit = Callable[[Mapping[str, Any]], None]
LOCATED_UP_TO = min(1_500_000_000, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16)
"""Bytes of an artifact up to which its nodes are evaluated one by one: that takes about ten copies of its weights."""
SEARCH_SAMPLES = (8, 32, 96)
"""Legal roundings tried before a difference that was searched for counts as unexplained."""


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
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and not tensor.is_meta:
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
    if job.evaluate is not None and job.evaluate.with_preprocess:
        from onnxproof.quality.preprocessing_export import combine

        module, inputs = combine(module, job.evaluate)
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
        "limits": {name: list(ends) for name, ends in subject.limits.items()},
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
            _examine(subject, job, report)
        else:
            _examine(subject, job, report)
            emit({"event": "stage", "case": None, "stage": "export"})
            artifact = export(subject, Path(job.out) / "model.onnx", job.export, report)
        _read_through(Path(artifact.path), report)
    except FindingError as error:
        report(bundled(error, Path(job.out), subject, environment()))
        return
    emit({"event": "artifact", "artifact": artifact.to_json()})


def run_lint(job: Job, emit: Emit, subject: Subject | None = None) -> None:
    """Look at the module only; emits the subject and findings."""
    emit({"event": "stage", "case": None, "stage": "import"})
    subject = subject or load_subject(job)
    emit({"event": "subject", "subject": describe_subject(subject, job), "environment": environment()})
    emit({"event": "stage", "case": None, "stage": "lint"})
    _examine(subject, job, lambda finding: emit({"event": "finding", "finding": finding.to_json()}))


def _examine(subject: Subject, job: Job, report: Callable[[Finding], None]) -> None:
    if subject.cast is not None:
        report(found("OX130", f"the module rejects the dtype of its example inputs; they were cast to {subject.cast}"))
    # The lint first: it sees a cache before a run fills it.
    for look in (lambda subject: lint_module(subject, job.target), examine):
        try:
            findings = look(subject)
        except Exception:
            continue  # a module that rejects its example says so itself in the next stage, with a better message
        for finding in findings:
            report(finding)


def _read_through(path: Path, report: Callable[[Finding], None]) -> None:
    """Notes about the file. Whether it answers right is for the cases to say, so none of them gates here, but for weights
    that are NaN: both sides answer alike with them, and neither answers anything."""
    for finding in lint_content(Graph.read(path)):
        broken = finding.code == "OX320" and finding.message.startswith("NaN")
        report(finding if broken else replace(finding, severity="note"))


def _beside(path: Path) -> str | None:
    side = path.with_suffix(".sourcemap.json")
    return str(side) if side.is_file() else None


SILENT = Listener(lambda finding: None, lambda cases, coverage: None, lambda case, stage: None, lambda result: None)


def run_locate(
    job: Job, artifact: Artifact, look: Look, emit: Emit, subject: Subject | None = None, *, stateful: bool = False
) -> None:
    """Look for the cause of some findings, and for the smallest input that shows each; emits blames and counterexamples."""
    emit({"event": "stage", "case": None, "stage": "locate"})
    subject = subject or load_subject(job)
    # As strict as a search: what is shrunk and kept is tried in every run from now on.
    verifier = Verifier(
        subject, artifact, job.verify, SILENT, stateful=stateful, samples=SEARCH_SAMPLES, unhurried=True
    )
    verifier.calibrate()
    planned = {case.name: case for case in verifier.plan()}
    cases = [(finding, _case(str(finding.where.case), planned, look.files)) for finding in look.findings]
    known = [(finding, case) for finding, case in cases if case is not None]
    if job.verify.counterexamples is not None:
        _keep(verifier, artifact, job, look, known, planned, emit)
    if artifact.bytes <= LOCATED_UP_TO:  # several float64 copies of the weights would not fit beyond
        emit({"event": "stage", "case": None, "stage": "locate"})
        _blame(verifier, artifact, job, look, known, emit)


def _case(name: str, planned: Mapping[str, Case], files: Mapping[str, str]) -> Case | None:
    if name in files:
        return Case(name, profile="search", file=files[name])
    case = planned.get(name) or planned.get(name.replace("/example/", "/normal/"))
    if case is not None and "/example/" in name:
        return replace(case, name=name, profile="example")
    return case


def _blame(
    verifier: Verifier, artifact: Artifact, job: Job, look: Look, known: list[tuple[Finding, Case]], emit: Emit
) -> None:
    from onnxproof.blame.locate import MEMORY, Locator

    try:
        locator = Locator(
            verifier.subject,
            artifact,
            job.verify.session,
            verifier.input_pairs,
            look.outputs,
            memory=job.verify.memory or MEMORY,
            out=Path(job.out) / "culprits",
        )
        for finding, case in known:
            blame = locator.locate(verifier.supply.make_inputs(case), explained=finding.code == "OX204")
            emit({"event": "blame", "case": case.name, "blame": blame.to_json()})
    except MemoryError:
        raise
    except Exception as error:
        # A cause that cannot be found leaves the finding as it is.
        emit({"event": "trouble", "stage": "locate", "message": f"{type(error).__name__}: {error}"[:500]})


def _keep(
    verifier: Verifier,
    artifact: Artifact,
    job: Job,
    look: Look,
    known: list[tuple[Finding, Case]],
    planned: Mapping[str, Case],
    emit: Emit,
) -> None:
    from onnxproof.search.counterexample import Keeper
    from onnxproof.search.script import Sides

    emit({"event": "stage", "case": None, "stage": "shrink"})
    sides = Sides(job.target, Path(artifact.path), job.verify.session, verifier.input_pairs, look.outputs)
    keeper = Keeper(verifier, look.policy, Path(str(job.verify.counterexamples)), job.target, sides)
    for finding, case in known:
        before = [name for name in finding.evidence.get("cases", ()) if name.startswith("kept/") and name in planned]
        kept = keeper.keep(planned[before[0]] if before else case, finding)
        emit({"event": "counterexample", "counterexample": kept.to_json()})


def run_search(
    job: Job,
    artifact: Artifact,
    look: Look,
    emit: Emit,
    subject: Subject | None = None,
    *,
    stateful: bool = False,
) -> None:
    """Look for an input on which the two sides part; emits what it did and, if there is one, the failing case and its file."""
    from onnxproof.search.attempts import Attempts
    from onnxproof.search.guide import Guide
    from onnxproof.search.hunt import Hunt

    emit({"event": "stage", "case": None, "stage": "search"})
    subject = subject or load_subject(job)
    listener = replace(SILENT, stage=lambda case, stage: emit({"event": "stage", "case": case, "stage": stage}))
    verifier = Verifier(subject, artifact, job.verify, listener, stateful=stateful, samples=SEARCH_SAMPLES)
    verifier.calibrate()
    attempts = Attempts(verifier, look, Path(str(job.verify.counterexamples)), job.verify.search, emit)
    graph = Graph.read(Path(artifact.path), weights=True)
    renamed = {written: name for name, written in verifier.input_pairs.items()}
    guide = Guide(verifier.subject, graph, job.verify.session, renamed, verifier.supply.example())
    try:
        Hunt(verifier.supply, guide, attempts.attempt, job.verify.seed).run(job.verify.search, attempts.tell)
    finally:
        attempts.close()


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
        plan=lambda cases, coverage: emit(
            {
                "event": "plan",
                "cases": [c.name for c in cases],
                "unfair": [c.name for c in cases if not c.fair],
                "coverage": coverage,
            }
        ),
        stage=lambda case, stage: emit({"event": "stage", "case": case, "stage": stage}),
        case=lambda result: emit({"event": "case", "case": result.to_json()}),
        outputs=lambda pairs: emit({"event": "outputs", "pairs": dict(pairs)}),
    )
    try:
        emit({"event": "stage", "case": None, "stage": "session"})
        verifier = Verifier(subject, artifact, job.verify, listener, stateful=stateful)
        verify(verifier, listener, done, job.verify.budget)
    except FindingError as error:
        finding = refusal(error.finding, artifact, job.verify.session)
        listener.finding(bundled(FindingError(finding), Path(job.out), subject, environment()))
