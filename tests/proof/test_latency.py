"""Times of one process and memory of others become one record."""

from __future__ import annotations

import proofs


def test_memory_goes_to_the_run_of_its_contender_and_size():
    latency = proofs.make_latency()
    first = latency.runs[0]
    point = {"batch": first.batch, "sizes": dict(first.sizes)}
    finished = latency.weighed(first.contender, [point], [4096])
    key = (first.contender, first.batch, first.sizes)
    assert {run.memory for run in finished.runs if (run.contender, run.batch, run.sizes) == key} == {4096}
    assert all(run.memory is None for run in finished.runs if run.contender != first.contender)
