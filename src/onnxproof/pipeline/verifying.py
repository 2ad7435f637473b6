"""The worker's part of verification: the planned cases on both sides."""

from __future__ import annotations

from pathlib import Path

from onnxproof.candidates import choose_candidate
from onnxproof.errors import FindingError
from onnxproof.graph.file import hold_against
from onnxproof.lints.refusal import explain_refusal
from onnxproof.parity.verification import Listener, verify
from onnxproof.pipeline.bug_report import add_bundle
from onnxproof.pipeline.events import Compared, Emit, Entered, Observed, Paired, Planned
from onnxproof.pipeline.loading import describe_environment
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request


def run_verify(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    done: frozenset[str],
    *,
    stateful: bool,
    weights: str | None = None,
    shop: Workshop,
) -> None:
    """Run the cases that are not done yet; emits the plan, stages, cases and findings."""
    emit(Entered("import"))
    subject, listener = shop.load(request, weights), make_listener(emit)
    try:
        emit(Entered("session"))
        with hold_against(Path(artifact.path)):
            verifier = shop.verifier(request, artifact, listener, stateful=stateful)
            verify(verifier, listener, done, request.verify.budget)
    except FindingError as error:
        finding = explain_refusal(
            error.finding, artifact, choose_candidate(request.verify.session), request.verify.session
        )
        listener.finding(add_bundle(FindingError(finding), Path(request.out), subject, describe_environment(request)))


def make_listener(emit: Emit) -> Listener:
    """What a verifier hears and says, as events."""
    return Listener(
        finding=lambda finding: emit(Observed(finding)),
        plan=lambda cases, coverage: emit(
            Planned([c.name for c in cases], [c.name for c in cases if not c.fair], coverage)
        ),
        stage=lambda case, stage: emit(Entered(stage, case)),
        case=lambda result: emit(Compared(result)),
        outputs=lambda pairs: emit(Paired(dict(pairs))),
    )
