"""The worker of a search: an input on which a file is wrong is found, written down and told."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onnxproof.pipeline import events
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.searching import run_search
from onnxproof.pipeline.workshop import Workshop
from onnxproof.request.thresholds import Policy
from onnxproof.search.look import Look
from pipeline.small import RIGHT, WRONG_ABOVE_THREE, Told, artifact_of, twice


def searched(tmp_path: Path, body: str, seconds: float) -> Told:
    told = Told()
    request = twice(search=seconds, out=str(tmp_path))
    artifact = artifact_of(tmp_path, body)
    run_search(told, CloserLook(request, artifact, Look((), {"output": "y"}, {}, Policy())), Workshop())
    return told


def test_what_breaks_it_is_told_with_its_file(tmp_path):
    told = searched(tmp_path, WRONG_ABOVE_THREE, 10.0)
    hit = told.of(events.Hit)[-1]
    with np.load(hit.file) as inputs:
        assert max(array.max() for array in inputs.values() if array.dtype == np.float32) > 3
    assert hit.case in [event.result.name for event in told.of(events.Compared)]
    assert told[0] == events.Entered("search")
    assert told.of(events.Searched)[-1].search.inputs > 0


def test_a_right_file_is_searched_until_the_work_is_done(tmp_path):
    told = searched(tmp_path, RIGHT, 1.0)
    assert told.of(events.Hit) == []
    assert told.of(events.Searched)[-1].search.inputs > 20
    assert told.of(events.Observed) == []


def test_a_search_that_the_clock_ends_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("onnxproof.search.hunt.PATIENCE", 0.0)
    (said,) = searched(tmp_path, RIGHT, 1.0).of(events.Observed)
    assert (said.finding.code, said.finding.severity) == ("OX005", "note")
    assert "the clock cut the search" in said.finding.message
