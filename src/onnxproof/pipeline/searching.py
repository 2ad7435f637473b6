"""The worker's part of a search: inputs on which the two sides part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from onnxproof.findings import found
from onnxproof.graph.view import Graph
from onnxproof.parity.listener import SILENT
from onnxproof.parity.verifier import Verifier
from onnxproof.parity.work import PATIENCE
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.events import Compared, Emit, Entered, Hit, Observed, Searched
from onnxproof.pipeline.locating import SEARCHED
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.search import Search
from onnxproof.search.attempts import Attempts, Told
from onnxproof.search.guide import Guide
from onnxproof.search.hunt import Find, Hunt


def run_search(emit: Emit, closer: CloserLook, shop: Workshop) -> None:
    """Look for an input on which the two sides part; emits what it did and, if there is one, the failing case and its file."""
    emit(Entered("search"))
    verifier = make_searcher(emit, closer, shop)
    verifier.calibrate()
    search(emit, closer, verifier, closer.request.verify.search, lambda outcome: emit(Searched(outcome)))


def make_searcher(emit: Emit, closer: CloserLook, shop: Workshop) -> Verifier:
    """What judges inputs that were searched for, and says where it is."""
    listener = replace(SILENT, stage=lambda case, stage: emit(Entered(stage, case)))
    return shop.look_closer(closer, listener, SEARCHED)


def search(
    emit: Emit, closer: CloserLook, verifier: Verifier, seconds: float, tell: Callable[[Search], None]
) -> Find | None:
    """Hunt for so many seconds of work; a find is told at once."""
    settings = closer.request.verify
    attempts = Attempts(verifier, closer.look, Path(str(settings.counterexamples)), make_told(emit, tell))
    renamed = {written: name for name, written in verifier.input_pairs.items()}
    graph = Graph.read(Path(closer.artifact.path))
    guide = Guide(verifier.subject, graph, verifier.candidate, settings.session, renamed, verifier.supply.example())
    try:
        hunt = Hunt(verifier.supply, guide, attempts.attempt, settings.seed, verifier.work)
        find = hunt.run(seconds, attempts.tell)
        if hunt.cut:
            message = f"the clock cut the search after {PATIENCE * seconds:g} s, {PATIENCE:g} times its budget: on a machine that is less busy it goes on"
            emit(Observed(found("OX005", message)))
        return find
    finally:
        attempts.close()


def make_told(emit: Emit, searched: Callable[[Search], None] = lambda outcome: None) -> Told:
    """Who hears of a find."""
    return Told(
        hit=lambda case, file: emit(Hit(case, file)), case=lambda result: emit(Compared(result)), searched=searched
    )
