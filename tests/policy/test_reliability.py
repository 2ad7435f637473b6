"""What speaks against the numbers, each with something that nearly does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.policy.reliability import find_doubts, name_place
from policy.times import MACHINE, bound, latency, run


def on(*runs, **changes):
    return latency(*runs, machine=replace(MACHINE, **changes))


CASES = [
    (latency(run(percentiles={"p50": bound(2.0), "p90": bound(3.1)})), "OX410", "1.6 times its p50"),
    (latency(run(percentiles={"p50": bound(2.0), "p90": bound(2.9)})), None, ""),
    (latency(run(cut=True, count=7)), "OX411", "onnxruntime at batch 1 has 7 samples"),
    (on(others=1.5), "OX412", "other processes used 1.5 of 4 cores"),
    (on(others=0.2), None, ""),
    (on(steal=0.05), "OX412", "the hypervisor took 5% of the time"),
    (on(run(0.001)), "OX413", "steps of 30 ns and a call of onnxruntime at batch 1 takes 1000 ns"),
    (on(run(0.01)), None, ""),
    (on(run(threads=5)), "OX414", "5 threads on 4 cores"),
    (on(run(threads=4)), None, ""),
    (on(run(scenario="server", concurrency=3)), "OX414", "3 workers of 2 threads each on 4 cores"),
    (on(run(scenario="server", concurrency=2)), None, ""),
    (on(throttled=3), "OX415", "slowed down 3 times"),
    (on(mhz_before=3000, mhz_after=2000), "OX415", "fell from 3000 to 2000 MHz"),
    (on(mhz_before=3000, mhz_after=2800), None, ""),
    (latency(run(steady=False)), "OX416", "times of onnxruntime at batch 1 were still falling"),
    (latency(run(steady=False, contender="other.onnx")), None, ""),
]


@pytest.mark.parametrize(("times", "code", "said"), CASES)
def test_each_doubt_and_what_nearly_is_one(times, code, said):
    findings = find_doubts(times)
    assert [finding.code for finding in findings] == ([code] if code else [])
    assert all(said in finding.message for finding in findings)


def test_too_many_threads_alone_are_told_before_too_many_together():
    together = run(scenario="server", concurrency=4)
    (finding,) = find_doubts(on(together, run(threads=8)))
    assert finding.evidence == {"threads": 8, "cores": 4}


def test_a_run_is_named_by_its_load():
    assert name_place(run(batch=8)) == "onnxruntime at batch 8"
    assert name_place(run(scenario="server", concurrency=3)) == "onnxruntime at batch 1 with 3 workers"
