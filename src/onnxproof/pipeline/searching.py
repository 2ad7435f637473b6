"""The worker's part of a search: inputs on which the two sides part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from onnxproof.graph.view import Graph
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.verification import SILENT
from onnxproof.pipeline.events import Compared, Emit, Entered, Hit, Searched
from onnxproof.pipeline.locating import SEARCHED
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request
from onnxproof.search.attempts import Attempts, Told
from onnxproof.search.guide import Guide
from onnxproof.search.hunt import Hunt
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
    settings = request.verify
    listener = replace(SILENT, stage=lambda case, stage: emit(Entered(stage, case)))
    verifier = shop.verifier(request, artifact, listener, SEARCHED, stateful=stateful, ledger=ledger)
    verifier.calibrate()
    told = Told(
        hit=lambda case, file: emit(Hit(case, file)),
        case=lambda result: emit(Compared(result)),
        searched=lambda outcome: emit(Searched(outcome)),
    )
    attempts = Attempts(verifier, look, Path(str(settings.counterexamples)), told)
    renamed = {written: name for name, written in verifier.input_pairs.items()}
    graph = Graph.read(Path(artifact.path))
    guide = Guide(verifier.subject, graph, verifier.candidate, settings.session, renamed, verifier.supply.example())
    try:
        Hunt(verifier.supply, guide, attempts.attempt, settings.seed, verifier.work).run(settings.search, attempts.tell)
    finally:
        attempts.close()
