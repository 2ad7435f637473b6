"""The worker's part of the screen: sizes and ids that the plan left out, at a glance."""

from __future__ import annotations

from pathlib import Path

from onnxproof.parity.ledger import Ledger
from onnxproof.pipeline.events import Emit, Entered
from onnxproof.pipeline.searching import make_searcher, make_told
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.search import Search
from onnxproof.request.request import Request
from onnxproof.search.attempts import Attempts
from onnxproof.search.look import Look
from onnxproof.search.screen import Screen


def run_screen(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    look: Look,
    *,
    stateful: bool,
    shop: Workshop,
    ledger: Ledger | None = None,
    spent: float = 0.0,
) -> None:
    """Look at every size and every id once; emits the failing case and its file, if there is one."""
    emit(Entered("screen"))
    settings = request.verify
    verifier = make_searcher(emit, request, artifact, stateful=stateful, shop=shop, ledger=ledger)
    attempts = Attempts(verifier, look, Path(str(settings.counterexamples)), make_told(emit))
    screen = Screen(verifier, settings.seed, spent, lambda case, stage: emit(Entered(stage, case)))
    try:
        screen.run(attempts.attempt, lambda find: attempts.tell(Search(0.0), find))
    finally:
        attempts.close()
