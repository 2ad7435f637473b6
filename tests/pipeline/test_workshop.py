"""What the stages share: loaded and made once, and made anew for anything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.parity.truth import PLANNED
from onnxproof.pipeline.locating import SEARCHED, SILENT
from onnxproof.pipeline.workshop import LARGE, Workshop
from pipeline.small import artifact_of, twice


def test_the_subject_is_loaded_once(tmp_path):
    shop, request = Workshop(), twice(out=str(tmp_path))
    assert shop.load(request) is shop.load(request)


def test_a_second_stage_has_the_same_session_and_float64_copy_and_its_own_effort(tmp_path):
    shop, request, artifact = Workshop(), twice(batch_sizes=(1,), out=str(tmp_path)), artifact_of(tmp_path)
    first = shop.verifier(request, artifact, SILENT, stateful=False)
    second = shop.verifier(request, artifact, SILENT, SEARCHED, stateful=False)
    assert second is not first
    assert (second.session, second.double, second.eager) == (first.session, first.double, first.eager)
    assert (first._effort, second._effort) == (PLANNED, SEARCHED)


def test_other_settings_get_a_session_of_their_own(tmp_path):
    shop, request, artifact = Workshop(), twice(batch_sizes=(1,), out=str(tmp_path)), artifact_of(tmp_path)
    first = shop.verifier(request, artifact, SILENT, stateful=False)
    session = replace(request.verify.session, optimization="disable")
    other = replace(request, verify=replace(request.verify, session=session))
    assert shop.verifier(other, artifact, SILENT, stateful=False).session is not first.session


@pytest.mark.parametrize("large", [False, True])
def test_only_a_large_session_makes_room(tmp_path, large):
    shop, request = Workshop(), twice(batch_sizes=(1,), out=str(tmp_path))
    artifact = replace(artifact_of(tmp_path), bytes=LARGE + large)
    first = shop.verifier(request, artifact, SILENT, stateful=False)
    shop.clear_away(artifact)
    second = shop.verifier(request, artifact, SILENT, stateful=False)
    assert (second.session is not first.session) is large
    assert second.session.run(second.supply.example())
