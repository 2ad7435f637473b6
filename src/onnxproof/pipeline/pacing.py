"""The worker's part of a look at one of several runtimes: its version, and how fast it is at a glance."""

from __future__ import annotations

from statistics import median

from onnxproof.candidates.candidate import PacedSession
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import Rejected
from onnxproof.parity.verification import SILENT
from onnxproof.pipeline.events import Emit, Entered, Paced
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request


def run_pace(emit: Emit, request: Request, artifact: Artifact, *, stateful: bool, shop: Workshop) -> None:
    """Time the example on the session that answered the cases; its process is not needed any more then."""
    emit(Entered("pace"))
    verifier = shop.verifier(request, artifact, SILENT, stateful=stateful)
    candidate, session = verifier.candidate, verifier.session
    seconds: list[float] = []
    if isinstance(session, PacedSession):
        try:
            seconds = list(session.pace(verifier.supply.example()))
        except (Rejected, MemoryError):  # verification has told it
            seconds = []
    emit(Paced(candidate.versions()["onnxruntime"], 1e3 * median(seconds) if seconds else None))
    if isinstance(candidate, RemoteRuntime):
        candidate.stop()
