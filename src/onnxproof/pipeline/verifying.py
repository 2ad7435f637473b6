"""The worker's part of verification: the planned cases on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import PacedSession
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import FindingError, Rejected
from onnxproof.graph.file import hold_against
from onnxproof.lints.refusal import explain_refusal
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.listener import Listener
from onnxproof.parity.verification import verify
from onnxproof.parity.verifier import Verifier
from onnxproof.pipeline.bug_report import add_bundle
from onnxproof.pipeline.events import Compared, Emit, Entered, Observed, Paced, Paired, Planned, RolledOut
from onnxproof.pipeline.loading import describe_environment
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request
from onnxproof.system import keep_memory

# Bytes from which on a file is large.
LARGE = 1 << 30


def run_verify(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    done: frozenset[str],
    *,
    planned: Sequence[str] = (),
    ledger: Ledger | None = None,
    stateful: bool,
    weights: str | None = None,
    shop: Workshop,
) -> None:
    """Run the cases that are not done yet; emits the plan, stages, cases and findings."""
    emit(Entered("import"))
    # In a child of ours; of a large model memory is dearer than time.
    if request.verify.isolated and artifact.bytes < LARGE:
        keep_memory()
    subject, listener = shop.load(request, weights), make_listener(emit)
    try:
        emit(Entered("session"))
        with hold_against(Path(artifact.path)):
            verifier = shop.verifier(request, artifact, listener, stateful=stateful, ledger=ledger)
            verify(verifier, listener, done, request.verify.budget, planned)
            if request.sweep:
                emit(_pace(verifier))
    except FindingError as error:
        finding = explain_refusal(
            error.finding, artifact, choose_candidate(request.verify.session), request.verify.session
        )
        listener.finding(add_bundle(FindingError(finding), Path(request.out), subject, describe_environment(request)))


def _pace(verifier: Verifier) -> Paced:
    """Which onnxruntime it is, and its time at a glance; one in a process of its own makes room for the next."""
    candidate, session, seconds = verifier.candidate, verifier.session, list[float]()
    with suppress(Rejected, MemoryError):  # the cases have told it
        seconds += session.pace(verifier.supply.example()) if isinstance(session, PacedSession) else ()
    version = candidate.versions()["onnxruntime"]
    if isinstance(candidate, RemoteRuntime):
        candidate.stop()
    return Paced(version, 1e3 * median(seconds) if seconds else None)


def make_listener(emit: Emit) -> Listener:
    """What a verifier hears and says, as events."""
    return Listener(
        finding=lambda finding: emit(Observed(finding)),
        plan=lambda cases, coverage: emit(
            Planned([c.name for c in cases], [c.name for c in cases if not c.fair], coverage)
        ),
        stage=lambda case, stage: emit(Entered(stage, case)),
        case=lambda result, ledger: emit(Compared(result, ledger and ledger.copy())),
        rollout=lambda rollout: emit(RolledOut(rollout)),
        outputs=lambda pairs: emit(Paired(dict(pairs))),
    )
