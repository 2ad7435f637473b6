"""The worker's part of the screen: sizes and ids that the plan left out, at a glance."""

from __future__ import annotations

from pathlib import Path

from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.events import Emit, Entered
from onnxproof.pipeline.searching import make_searcher, make_told
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.search import Search
from onnxproof.search.attempts import Attempts
from onnxproof.search.screen import Screen


def run_screen(emit: Emit, closer: CloserLook, shop: Workshop) -> None:
    """Look at every size and every id once; emits the failing case and its file, if there is one."""
    emit(Entered("screen"))
    settings, verifier = closer.request.verify, make_searcher(emit, closer, shop)
    attempts = Attempts(verifier, closer.look, Path(str(settings.counterexamples)), make_told(emit))
    screen = Screen(verifier, settings.seed, closer.spent, lambda case, stage: emit(Entered(stage, case)))
    try:
        screen.run(attempts.attempt, lambda find: attempts.tell(Search(0.0), find))
    finally:
        attempts.close()
