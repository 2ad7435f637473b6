"""The worker's part of the trials: every piece of the graph on values of its own, and an input of the model that brings them there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from onnxproof.graph.sourcemap import place_in, read
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.events import Emit, Entered, Tried
from onnxproof.pipeline.searching import make_searcher, search
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.trials import Trials
from onnxproof.trials.examination import try_pieces
from onnxproof.trials.kernels import Kernels

# Seconds of work in which an input is looked for that brings a piece where it differs.
REACHING = 15.0


def run_trials(emit: Emit, closer: CloserLook, shop: Workshop) -> None:
    """Try every piece; where one differs, look for an input of the model that shows it. Emits what came of it."""
    emit(Entered("trial"))
    if closer.stateful:
        # Its pieces answer by what was asked before, and not by what they are given alone.
        emit(Tried(Trials(reason="a forward changes what the next one answers")))
        return
    verifier, sourcemap = make_searcher(emit, closer, shop), closer.artifact.sourcemap
    origins = read(Path(sourcemap)) if sourcemap else {}
    session, here = closer.request.verify.session, not verifier.candidate.abilities.elsewhere
    kernels = Kernels(Path(closer.artifact.path), verifier.candidate, session) if here else None
    trials = try_pieces(verifier, closer.spent, lambda node: place_in(origins, node).module, kernels)
    latent = tuple(replace(one, where=place_in(origins, one.last)) for one in trials.latent)
    trials = replace(trials, latent=latent)
    emit(Tried(trials))
    # A search that was asked for comes next, and has longer.
    if not trials.latent or closer.request.verify.search:
        return
    verifier.calibrate()
    find = search(emit, closer, verifier, REACHING, lambda outcome: None)
    if find is not None:
        emit(Tried(replace(trials, latent=tuple(replace(one, reached=find.name) for one in trials.latent))))
