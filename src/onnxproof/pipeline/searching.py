"""The worker's part of a search: inputs on which the two sides part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from onnxproof.graph.view import Graph
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.verification import SILENT, Verifier
from onnxproof.pipeline.events import Compared, Emit, Entered, Hit, Searched
from onnxproof.pipeline.locating import SEARCHED
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.search import Search
from onnxproof.request.request import Request
from onnxproof.search.attempts import Attempts, Told
from onnxproof.search.guide import Guide
from onnxproof.search.hunt import Find, Hunt
from onnxproof.search.look import Look


def run_search(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    look: Look,
    *,
    stateful: bool,
    shop: Workshop,
    ledger: Ledger | None = None,
) -> None:
    """Look for an input on which the two sides part; emits what it did and, if there is one, the failing case and its file."""
    emit(Entered("search"))
    verifier = make_searcher(emit, request, artifact, stateful=stateful, shop=shop, ledger=ledger)
    verifier.calibrate()
    search(emit, request, artifact, look, verifier, request.verify.search, lambda outcome: emit(Searched(outcome)))


def make_searcher(
    emit: Emit, request: Request, artifact: Artifact, *, stateful: bool, shop: Workshop, ledger: Ledger | None
) -> Verifier:
    """What judges inputs that were searched for, and says where it is."""
    listener = replace(SILENT, stage=lambda case, stage: emit(Entered(stage, case)))
    return shop.verifier(request, artifact, listener, SEARCHED, stateful=stateful, ledger=ledger)


def search(
    emit: Emit,
    request: Request,
    artifact: Artifact,
    look: Look,
    verifier: Verifier,
    seconds: float,
    tell: Callable[[Search], None],
) -> Find | None:
    """Hunt for so many seconds of work; a find is told at once."""
    settings = request.verify
    attempts = Attempts(verifier, look, Path(str(settings.counterexamples)), make_told(emit, tell))
    renamed = {written: name for name, written in verifier.input_pairs.items()}
    graph = Graph.read(Path(artifact.path))
    guide = Guide(verifier.subject, graph, verifier.candidate, settings.session, renamed, verifier.supply.example())
    try:
        hunt = Hunt(verifier.supply, guide, attempts.attempt, settings.seed, verifier.work)
        return hunt.run(seconds, attempts.tell)
    finally:
        attempts.close()


def make_told(emit: Emit, searched: Callable[[Search], None] = lambda outcome: None) -> Told:
    """Who hears of a find."""
    return Told(
        hit=lambda case, file: emit(Hit(case, file)), case=lambda result: emit(Compared(result)), searched=searched
    )
