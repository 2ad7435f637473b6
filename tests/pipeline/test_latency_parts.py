"""Times of one child and memory of others become one record."""

from __future__ import annotations

from dataclasses import replace

import pytest

import proofs
from onnxproof.errors import UserError
from onnxproof.pipeline.latency_parts import earlier_of, with_memory
from onnxproof.request.benchmark import BenchSettings


def test_memory_goes_to_the_run_of_its_contender_and_size():
    latency = proofs.make_latency()
    first = latency.runs[0]
    point = {"batch": first.batch, "sizes": dict(first.sizes)}
    finished = with_memory(latency, first.contender, [point], [4096])
    key = (first.contender, first.batch, first.sizes)
    assert {run.memory for run in finished.runs if (run.contender, run.batch, run.sizes) == key} == {4096}
    assert all(run.memory is None for run in finished.runs if run.contender != first.contender)
    assert with_memory(None, first.contender, [point], [4096]) is None


def test_an_earlier_proof_is_what_it_measured_without_its_samples(tmp_path):
    timed = proofs.make_proof(latency=proofs.make_latency())
    timed.save(tmp_path / "before.json")
    earlier = earlier_of(BenchSettings(baseline=str(tmp_path / "before.json")))
    assert [run.contender for run in earlier.runs] == [run.contender for run in timed.latency.runs]
    assert not any(run.samples for run in earlier.runs)
    assert earlier_of(None) is earlier_of(BenchSettings()) is None
    replace(timed, latency=None).save(tmp_path / "none.json")
    with pytest.raises(UserError, match="no times"):
        earlier_of(BenchSettings(baseline=str(tmp_path / "none.json")))
