"""The thresholds of a policy with those in their place that the user gave."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.policy.asked import find_limits, make_policy
from onnxproof.request.request import Limits
from onnxproof.request.thresholds import Judgement, LatencyPolicy, Policy, QualityPolicy, Thresholds, Tolerance

BASE = Policy(
    noise=7.0,
    accept={"OX201": "known"},
    latency=LatencyPolicy(max_latency={"p50": 3.0}, min_speedup=1.5, max_memory=9),
    quality=QualityPolicy(minimum={"recall": 0.8}, max_drop={"accuracy": 0.1}),
)


def test_what_is_not_asked_is_the_policys_own():
    assert make_policy(Judgement()) == Policy()
    assert make_policy(Judgement(), BASE) == BASE


def test_what_is_asked_takes_its_place_and_gates_join():
    asked = Judgement(
        noise=0.0,
        accept={"OX202": "fine"},
        quality=QualityPolicy(minimum={"recall": 0.9, "f1": 0.5}),
        latency=LatencyPolicy(max_latency={"p99": 20.0}, min_speedup=1.1, max_memory=5),
    )
    policy = make_policy(asked, BASE)
    assert policy.noise == 0.0
    assert policy.accept == {"OX201": "known", "OX202": "fine"}
    assert policy.latency == replace(BASE.latency, max_latency={"p99": 20.0}, min_speedup=1.1, max_memory=5)
    assert policy.quality.minimum == {"recall": 0.9, "f1": 0.5}
    assert policy.quality.max_drop == {"accuracy": 0.1}


def test_who_promises_a_tolerance_does_not_promise_the_defaults_absolute_limit():
    policy = make_policy(Judgement(atol=Thresholds(1e-2)))
    assert policy.tolerance == Tolerance(1e-2, 1e-3, float("inf"), promised=True)
    both = Judgement(atol=Thresholds(1e-2), max_abs=Thresholds(0.5))
    assert make_policy(both).tolerance == Tolerance(1e-2, 1e-3, 0.5, promised=True)
    assert make_policy(Judgement(rtol=Thresholds(0.0)), make_policy(both)).tolerance.max_abs == 0.5


def test_an_output_starts_from_the_general_contract():
    policy = make_policy(Judgement(atol=Thresholds(1e-2, {"y": 1e-6}), rtol=Thresholds(None, {"y": 0.0})))
    assert policy.outputs == {"y": Tolerance(1e-6, 0.0, float("inf"), promised=True)}


def test_the_tightest_of_all_outputs_is_looked_at():
    outputs = {"y": Tolerance(1e-6, 1e-1, 1.0), "z": Tolerance(1.0, 1e-5, 1e-7)}
    assert find_limits(replace(BASE, outputs=outputs)) == Limits(7.0, 1e-6, 1e-5, 1e-7)
    assert find_limits(Policy()) == Limits()
