"""Times are judged: every code with its trigger and its near miss."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onnxproof.findings import CATALOGUE
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.environment import Environment
from onnxproof.proof.latency import (
    KEPT_SAMPLES,
    Absent,
    Bound,
    Earlier,
    Latency,
    Machine,
    OperatorShare,
    Profile,
    Run,
    SlowNode,
    Speedup,
    Tuned,
    thin_samples,
)
from onnxproof.proof.subject import SubjectFacts
from onnxproof.proved import Proof
from onnxproof.request.benchmark import Variant, parse_length, parse_variant
from onnxproof.request.option import Expected
from onnxproof.request.thresholds import LatencyPolicy, Policy, parse_latency

MACHINE = Machine("here", "a processor", 4, 8 * 10**9, clock_ns=30, overhead_ns=60, others=0.0, steal=0.0, throttled=0)


def run_of(p50=2.0, *, contender="onnxruntime", batch=1, spread=0.02, tail=1.2, **changes):
    bounds = {
        "p50": Bound(p50, p50 * (1 - spread), p50 * (1 + spread)),
        "p90": Bound(p50 * tail, p50 * tail * (1 - spread), p50 * tail * (1 + spread)),
    }
    run = Run(contender, batch, {"batch": batch}, "single", (int(p50 * 1e6),) * 100, 100, percentiles=bounds, threads=2)
    return replace(run, **changes)


def latency_of(*runs, speedup=((1, 2.0, 1.9, 2.1),), **changes):
    gains = tuple(Speedup(b, "onnxruntime", r, lo, hi, 50, {"batch": b}) for b, r, lo, hi in speedup)
    runs = runs or (run_of(4.0, contender="pytorch"), run_of())
    return replace(Latency(tuple(runs), gains, MACHINE), **changes)


def judged(latency, **limits):
    """Codes and severities of the findings about some times."""
    policy = Policy(latency=LatencyPolicy(**limits))
    proof = Proof(SubjectFacts("model"), None, Environment(), (), (), latency=latency)
    return {f.code: f.severity for f in proof.judged(policy).findings}


LOST = latency_of(speedup=((1, 0.7, 0.66, 0.74),))
SAME = latency_of(speedup=((1, 1.02, 0.97, 1.06),))
BASELINE = Earlier("old.json", "here", (run_of(1.5),), latency_of(speedup=((1, 2.5, 2.4, 2.6),)).speedup)
SERVED = run_of(scenario="server", concurrency=2, rate=100.0, threads=1)

CASES = {
    "OX401": [
        (latency_of(), {"max_latency": {"p50": 1.0}}, "block"),
        (latency_of(), {"max_latency": {"p50": 2.1}}, None),
    ],
    "OX402": [
        (latency_of(), {"max_latency": {"p99": 20.0}}, "review"),
        (latency_of(), {"max_latency": {"p50": 2.01}}, "review"),
        (latency_of(), {"min_speedup": 2.0}, "review"),
        (latency_of(speedup=()), {"min_speedup": 1.0}, "review"),
        (latency_of(), {"max_memory": 10**9}, "review"),
        (None, {"min_speedup": 1.0}, "review"),
        (latency_of(baseline=replace(BASELINE, runs=())), {}, "review"),
        (latency_of(), {"max_latency": {"p90": 20.0}, "min_speedup": 1.9}, None),
    ],
    "OX403": [
        (latency_of(run_of(150.0)), {}, "review"),
        (latency_of(run_of(90.0)), {}, None),
        (latency_of(run_of(99.5)), {}, "review"),
        (latency_of(run_of(150.0)), {"max_latency": {"p50": 200.0}}, None),
        (latency_of(run_of(20.0), run_of(150.0, batch=32)), {}, "note"),
    ],
    "OX404": [(LOST, {}, "review"), (SAME, {}, None), (LOST, {"min_speedup": 0.5}, "note")],
    "OX405": [(SAME, {}, "note"), (latency_of(), {}, None)],
    "OX406": [(latency_of(), {"min_speedup": 2.5}, "block"), (latency_of(), {"min_speedup": 1.5}, None)],
    "OX407": [
        (latency_of(run_of(memory=180_000_000)), {"max_memory": 100_000_000}, "block"),
        (latency_of(run_of(memory=180_000_000)), {"max_memory": 200_000_000}, None),
    ],
    "OX408": [
        (latency_of(baseline=BASELINE), {}, "review"),
        (latency_of(baseline=replace(BASELINE, runs=(run_of(1.94),))), {}, None),
        (latency_of(baseline=replace(BASELINE, fingerprint="there")), {}, "review"),
        (latency_of(baseline=replace(BASELINE, fingerprint="there", speedup=latency_of().speedup)), {}, None),
    ],
    "OX409": [
        (latency_of(baseline=replace(BASELINE, fingerprint="there")), {}, "note"),
        (latency_of(baseline=BASELINE), {}, None),
    ],
    "OX410": [(latency_of(run_of(tail=3.0)), {}, "note"), (latency_of(run_of(tail=1.2)), {}, None)],
    "OX411": [(latency_of(run_of(cut=True)), {}, "note"), (latency_of(run_of()), {}, None)],
    "OX412": [
        (latency_of(machine=replace(MACHINE, others=1.0)), {}, "note"),
        (latency_of(machine=replace(MACHINE, steal=0.1)), {}, "note"),
        (latency_of(machine=replace(MACHINE, others=0.05)), {}, None),
        (latency_of(machine=replace(MACHINE, others=None, steal=None)), {}, None),
    ],
    "OX413": [
        (latency_of(run_of(0.002), machine=replace(MACHINE, clock_ns=1000)), {}, "note"),
        (latency_of(run_of(0.002), machine=replace(MACHINE, clock_ns=1)), {}, None),
    ],
    "OX414": [
        (latency_of(run_of(threads=8)), {}, "note"),
        (latency_of(run_of(threads=4, scenario="server", concurrency=2)), {}, "note"),
        (latency_of(run_of(threads=4)), {}, None),
        (latency_of(run_of(threads=2, scenario="server", concurrency=2)), {}, None),
    ],
    "OX415": [
        (latency_of(machine=replace(MACHINE, throttled=3)), {}, "note"),
        (latency_of(machine=replace(MACHINE, mhz_before=3000, mhz_after=2000)), {}, "note"),
        (latency_of(machine=replace(MACHINE, mhz_before=3000, mhz_after=2950)), {}, None),
    ],
    "OX416": [(latency_of(run_of(steady=False)), {}, "note"), (latency_of(run_of(steady=True)), {}, None)],
    "OX417": [(latency_of(absent=(Absent("torch.compile", "no compiler"),)), {}, "note"), (latency_of(), {}, None)],
    "OX419": [
        (latency_of(replace(SERVED, backlog=0.5)), {}, "review"),
        (latency_of(replace(SERVED, backlog=0.01)), {}, None),
    ],
    "OX420": [
        (latency_of(tuned=(Tuned({"threads": 1}, 1, 1.5, 1.4, 1.6, "ship", 20),)), {}, "note"),
        (latency_of(tuned=(Tuned({"threads": 1}, 1, 1.5, 1.4, 1.6, "block", 20),)), {}, None),
    ],
}


@pytest.mark.parametrize(
    ("code", "latency", "limits", "severity"), [(code, *case) for code, cases in CASES.items() for case in cases]
)
def test_each_code_has_its_trigger_and_its_near_miss(code, latency, limits, severity):
    assert judged(latency, **limits).get(code) == severity


def test_every_code_is_tried():
    # OX418 needs real comparisons: see test_a_wrong_second_file_is_noted_and_does_not_gate.
    assert {*CASES, "OX418"} == {code for code in CATALOGUE if code.startswith("OX4")}


def test_no_times_and_no_limits_say_nothing():
    assert judged(None) == {}
    assert judged(latency_of()) == {}


def test_in_the_server_scenario_limits_speak_of_all_workers():
    latency = latency_of(
        run_of(2.0), replace(SERVED, concurrency=1), replace(run_of(9.0), scenario="server", concurrency=4)
    )
    assert judged(latency, max_latency={"p50": 5.0})["OX401"] == "block"
    assert "OX401" not in judged(latency, max_latency={"p50": 10.0})


def test_slower_comes_with_likely_reasons_and_the_slowest_node():
    nodes = (SlowNode("node_Transpose_3", "Transpose", 0.6, 1.2, "CPUExecutionProvider", "head", "m.py", 7, "x.T"),)
    ops = {"Transpose": OperatorShare(0.6, 4.0), "Erf": OperatorShare(0.2, 2.0)}
    profile = Profile(1, {"batch": 1}, 50, nodes, ops, {"CPUExecutionProvider": 1.0})
    latency = replace(latency_of(run_of(0.4), speedup=((1, 0.7, 0.66, 0.74),)), profile=profile)
    proof = Proof(SubjectFacts(), None, Environment(), (), (), latency=latency).judged(Policy())
    finding = next(f for f in proof.findings if f.code == "OX404")
    reasons = " | ".join(finding.evidence["reasons"])
    assert "threads for a call" in reasons
    assert "only moves or converts data (4 Transpose)" in reasons
    assert "GELU is not fused" in reasons
    assert (finding.where.node, finding.where.file, finding.where.line) == ("node_Transpose_3", "m.py", 7)
    assert "--tune" in finding.help


def test_a_record_survives_json_and_keeps_few_samples():
    latency = latency_of(baseline=BASELINE, absent=(Absent("a", "b"),), tuned=(Tuned({}, 1, 2.0, 1.9, 2.1),))
    again = decode(json.loads(json.dumps({**to_plain(latency), "from_the_future": 1})), Latency)
    assert again.runs == latency.runs
    assert again.speedup == latency.speedup
    assert again.baseline.runs[0].percentiles == BASELINE.runs[0].percentiles
    assert to_plain(again.runs[0])["p99_ms"] is None
    many = thin_samples(list(range(100_001)))
    assert len(many) <= KEPT_SAMPLES
    assert many[:2] == (0, 51)
    assert thin_samples([3, 1, 2]) == (3, 1, 2)


def test_what_the_user_writes_is_understood_or_refused():
    assert parse_variant("threads=1,binding=yes") == Variant(threads=1, binding=True)
    assert parse_variant("threads=1,binding=yes").name == "onnxruntime[threads=1,binding=yes]"
    assert parse_length("seq=16,128") == ("seq", (16, 128))
    assert parse_latency("p99=20ms") == ("p99", 20.0)
    assert parse_latency("p50=0.5s") == ("p50", 500.0)
    for parse, text in (
        (parse_variant, "speed=high"),
        (parse_variant, "threads=0"),
        (parse_variant, "optimization=max"),
        (parse_variant, ""),
        (parse_length, "seq="),
        (parse_latency, "p42=1ms"),
        (parse_latency, "p99"),
        (parse_latency, "p99=-1ms"),
    ):
        with pytest.raises(Expected):
            parse(text)
