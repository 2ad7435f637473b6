"""The worker of the trials: what came of them is told; a module that answers by what was asked before has none."""

from __future__ import annotations

from pathlib import Path

from onnxproof.pipeline import events
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.trying import run_trials
from onnxproof.pipeline.workshop import Workshop
from onnxproof.request.thresholds import Policy
from onnxproof.search.look import Look
from pipeline.small import RIGHT, Told, artifact_of, twice


def tried(tmp_path: Path, *, stateful: bool) -> events.Tried:
    told, request = Told(), twice(out=str(tmp_path))
    look = Look((), {"output": "y"}, {}, Policy())
    run_trials(told, CloserLook(request, artifact_of(tmp_path, RIGHT), look, stateful), Workshop())
    return told.of(events.Tried)[-1]


def test_every_piece_is_tried(tmp_path):
    trials = tried(tmp_path, stateful=False).trials
    assert trials.tried == trials.pieces > 0
    assert trials.latent == ()


def test_a_module_that_changes_itself_has_no_pieces_of_its_own(tmp_path):
    trials = tried(tmp_path, stateful=True).trials
    assert (trials.pieces, trials.latent) == (0, ())
    assert trials.reason == "a forward changes what the next one answers"
