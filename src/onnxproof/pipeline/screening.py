"""The worker's part of the screen: sizes and ids that the plan left out, at a glance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from onnxproof.parity.verification import SILENT
from onnxproof.pipeline.events import Compared, Emit, Entered, Hit
from onnxproof.pipeline.locating import SEARCHED
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.search import Search
from onnxproof.request.request import Request
from onnxproof.search.attempts import Attempts, Told
from onnxproof.search.look import Look
from onnxproof.search.screen import Screen


def run_screen(emit: Emit, request: Request, artifact: Artifact, look: Look, *, stateful: bool, shop: Workshop) -> None:
    """Look at every size and every id once; emits the failing case and its file, if there is one."""
    emit(Entered("screen"))
    settings = request.verify
    listener = replace(SILENT, stage=lambda case, stage: emit(Entered(stage, case)))
    verifier = shop.verifier(request, artifact, listener, SEARCHED, stateful=stateful)
    told = Told(
        hit=lambda case, file: emit(Hit(case, file)),
        case=lambda result: emit(Compared(result)),
        searched=lambda outcome: None,
    )
    attempts = Attempts(verifier, look, Path(str(settings.counterexamples)), told)
    try:
        Screen(verifier, settings.seed, shop.spent, listener.stage).run(
            attempts.attempt, lambda find: attempts.tell(Search(0.0), find)
        )
    finally:
        attempts.close()
