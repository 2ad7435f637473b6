"""The worker's first part: examine the module, export it or read the file, look at both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import torch

from onnxproof.artifact.earlier import describe_making, export_once
from onnxproof.artifact.file import read_artifact
from onnxproof.artifact.pairing import hide_state
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import require_timed
from onnxproof.data.source import fingerprint_files
from onnxproof.errors import FindingError
from onnxproof.findings import Finding, found
from onnxproof.graph.file import hold_against
from onnxproof.graph.view import Graph
from onnxproof.lints.graph import lint_content
from onnxproof.lints.module import lint_module
from onnxproof.lints.operations import lint_operations
from onnxproof.parity.declared import declare_precision
from onnxproof.pipeline.bug_report import add_bundle
from onnxproof.pipeline.events import Based, Emit, Entered, Exported, Observed, SubjectRead
from onnxproof.pipeline.loading import describe_environment, describe_subject
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request
from onnxproof.subject.examination import examine, sample_weights
from onnxproof.subject.subject import Subject

# Values of an input that are told one by one.
SHOWN = 8


def run_export(emit: Emit, request: Request, killed_by: str | None = None, *, shop: Workshop) -> None:
    """Examine and export (or read the given file); emits subject, findings and the artifact.

    `killed_by` says how the default exporter killed its process before: then the other one is used.
    """
    if request.bench is not None:
        # Before the export, which would be in vain.
        require_timed(choose_candidate(request.verify.session))
    subject, weights = _begin(emit, request, shop)

    def report(finding: Finding) -> None:
        emit(Observed(finding))

    try:
        emit(Entered("examine"))
        # A file that cannot be read is told before the module is run.
        artifact = _read_given(request) if request.onnx is not None else None
        hidden = hide_state(artifact, list(subject.inputs.tensors))[1] if artifact is not None else {}

        def report_module(finding: Finding) -> None:
            carried = bool(hidden) and finding.entry.stateful
            message = (
                f"{finding.message}; the file carries {', '.join(f'{o} → {i}' for o, i in hidden.items())} instead"
            )
            report(replace(finding, severity="note", message=message) if carried else finding)

        _examine(subject, request, report_module)
        if artifact is None:
            emit(Entered("export"))
            artifact = _export(subject, request, weights, killed_by, report)
        artifact = declare_precision(artifact, subject, request.verify.precision)
        _read_through(Path(artifact.path), report)
    except FindingError as error:
        report(add_bundle(error, Path(request.out), subject, describe_environment(request)))
        return
    emit(Based(_fingerprint_run(subject, request, weights, artifact)))
    emit(Exported(artifact))


def run_lint(emit: Emit, request: Request, shop: Workshop) -> None:
    """Look at the module only; emits the subject and findings."""
    subject, _ = _begin(emit, request, shop)
    emit(Entered("lint"))
    _examine(subject, request, lambda finding: emit(Observed(finding)))


def _begin(emit: Emit, request: Request, shop: Workshop) -> tuple[Subject, str]:
    """The subject, and the hash of its weights."""
    emit(Entered("import"))
    subject = shop.load(request)
    facts = describe_subject(subject, request)
    emit(SubjectRead(facts, describe_environment(request)))
    return subject, str(facts.weights)


def _fingerprint_run(subject: Subject, request: Request, weights: str, artifact: Artifact) -> str:
    """Changes with anything that the answers depend on; another one each time where the code cannot be seen."""
    settings = request.evaluate
    named = [request.target, request.verify.data, *([settings.train_data, settings.labels] if settings else [])]
    named += [settings.preprocess, settings.serve_preprocess, *settings.metrics] if settings else []
    paths = [Path(text.rpartition(":")[0] if ".py:" in text else text) for text in named if text]
    files = [fingerprint_files(path) for path in paths if path.exists()]
    code = describe_making(subject, request.export, weights)
    # A file that is no Python is its own code.
    if code is None and not (request.target and paths[0].is_file() and paths[0].suffix != ".py"):
        code = token_hex()
    parts = (artifact.sha256, weights, code, files, describe_environment(request))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _read_given(request: Request) -> Artifact:
    path = Path(str(request.onnx))
    side = path.with_suffix(".sourcemap.json")
    with hold_against(path):
        return read_artifact(path, sourcemap=str(side) if side.is_file() else None)


def _export(
    subject: Subject, request: Request, weights: str, killed_by: str | None, report: Callable[[Finding], None]
) -> Artifact:
    options = request.export if killed_by is None else replace(request.export, exporter="torchscript")
    artifact = export_once(subject, Path(request.out) / "model.onnx", options, weights, report)
    if killed_by is not None:
        message = f"the default exporter killed its process ({killed_by}); TorchScript was used"
        report(found("OX107", message, evidence={"signal": killed_by}))
    return artifact


def _examine(subject: Subject, request: Request, report: Callable[[Finding], None]) -> None:
    if subject.cast is not None:
        report(found("OX130", f"the module rejects the dtype of its example inputs; they were cast to {subject.cast}"))
    if subject.completed or subject.foreign:
        own, alone = ", ".join(subject.completed), ", ".join(_show(n, t) for n, t in subject.foreign.items())
        told = [f"the example got {own}, which the file takes and it left out"] if own else []
        told += [f"{alone} goes to the file alone, which asks for it"] if alone else []
        report(found("OX151", "; ".join(told)))
    if subject.tied:
        flags = " ".join(f"--dynamic {one}" for one in subject.tied)
        message = f"the module takes other sizes only if more inputs have them: {flags} was taken along"
        report(found("OX150", message, evidence={"taken": list(subject.tied)}))
    # Nobody knows which exporter made someone else's file.
    exporter = "torchscript" if request.export.exporter == "torchscript" else "dynamo"
    used = (lambda subject: list(lint_operations(subject, exporter)),) if request.onnx is None else ()
    weights = sample_weights(subject)
    # The lint first: it sees a cache before a run fills it.
    for look in (lambda subject: lint_module(subject, request.target), partial(examine, weights=weights), *used):
        try:
            findings = look(subject)
        except Exception:
            continue  # a module that rejects its example says so itself in the next stage, with a better message
        for finding in findings:
            report(finding)


def _show(name: str, tensor: torch.Tensor) -> str:
    """The values of a small tensor, the form of a larger one."""
    if tensor.numel() <= SHOWN:
        return f"{name} = {tensor.tolist()}"
    return f"{name} ({'x'.join(map(str, tensor.shape))}, {str(tensor.dtype).removeprefix('torch.')})"


def _read_through(path: Path, report: Callable[[Finding], None]) -> None:
    """Notes about the file. Whether it answers right is for the cases to say, so none of them gates here, but for weights
    that are NaN: both sides answer alike with them, and neither answers anything."""
    with hold_against(path):
        findings = lint_content(Graph.read(path))
    for finding in findings:
        broken = finding.evidence.get("values") == "nan"
        report(finding if broken else replace(finding, severity="note"))
