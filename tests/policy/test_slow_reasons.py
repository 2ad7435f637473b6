"""Likely reasons for a slow session, the likeliest first."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.policy.slow_reasons import guess_reasons
from onnxproof.proof.latency import OperatorShare, Profile, SlowNode
from policy.times import MACHINE, gain, latency, run

SLOW = gain(0.7, 0.6, 0.8)
QUIET = run(5.0)


def reasons(*runs, profile=None, machine=MACHINE):
    times = latency(*(runs or (QUIET,)), profile=profile, machine=machine)
    return [reason.text for reason in guess_reasons(times, SLOW)]


def profile(providers=None, nodes=(), **ops):
    shares = {op: OperatorShare(share, 2.0) for op, share in ops.items()}
    return Profile(1, {"batch": 1}, 50, nodes, shares, providers or {"CPUExecutionProvider": 1.0})


def test_nothing_known_gives_no_reason():
    assert reasons() == reasons(profile=profile()) == []


def test_time_on_other_providers_leads():
    shares = {"CPUExecutionProvider": 0.7, "CUDAExecutionProvider": 0.3}
    told = reasons(run(0.01), profile=profile(shares))
    assert told[0] == "30% of the time is spent on other providers than CPUExecutionProvider"
    assert len(told) == 3


def test_threads_that_a_call_cannot_feed_and_calls_that_are_too_short():
    assert reasons(run(0.5)) == ["2 threads for a call of 0.5 ms: more than batch 1 can feed"]
    assert reasons(run(0.02, threads=1)) == ["a call of 20 µs is mostly the cost of calling"]
    assert reasons(run(0.5, threads=1)) == reasons(run(0.02, batch=8)) == []
    busy = replace(MACHINE, others=2.0)
    assert reasons(machine=busy) == ["2 threads share 4 cores with other processes"]


def test_moving_data_is_a_reason_from_a_tenth_on():
    told = reasons(profile=profile(Cast=0.06, Transpose=0.3, MatMul=0.5))
    assert told == ["36% of the time only moves or converts data (2 Transpose, 2 Cast)"]
    assert reasons(profile=profile(Cast=0.06, MatMul=0.5)) == []


def test_what_is_there_in_pieces_is_not_fused():
    pieces = {"ReduceMean": 0.1, "Sqrt": 0.1, "Div": 0.1}
    assert reasons(profile=profile(**pieces))[0].startswith(
        "layer normalisation is not fused (ReduceMean, Sqrt, Div take 30%"
    )
    assert reasons(profile=profile(**pieces, LayerNormalization=0.2)) == []
    assert reasons(profile=profile(ReduceMean=0.2, Sqrt=0.1)) == []


def test_the_slowest_node_has_its_place():
    node = SlowNode("n3", "Conv", 0.6, 1.2, "CPUExecutionProvider", "head", "m.py", 7)
    assert reasons(profile=profile(nodes=(node,))) == ["Conv node n3 (m.py:7) takes 60% of the time"]
    assert reasons(profile=profile(nodes=(replace(node, file=None),))) == ["Conv node n3 (head) takes 60% of the time"]
