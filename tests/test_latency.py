"""What the clock says: statistics, the timed loop, scenarios, doubts, judgement, and whole runs."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from itertools import pairwise

import jsonschema
import numpy as np
import onnx
import pytest

import models
import onnxproof
from conftest import codes, target
from onnxproof.candidates.onnxruntime import SUFFIX, node_times
from onnxproof.errors import UserError
from onnxproof.findings import CATALOGUE
from onnxproof.latency import harness, scenarios
from onnxproof.latency import profile as slow
from onnxproof.latency.harness import Harness, Need, Timed
from onnxproof.latency.statistics import needed, percentile, ratio_interval
from onnxproof.proof.codec import decode, plain
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
    thinned,
)
from onnxproof.proof.schema import schema
from onnxproof.proof.subject import SubjectFacts
from onnxproof.proved import Proof
from onnxproof.request.benchmark import Variant, levels, parse_length, parse_variant
from onnxproof.request.judgement import parse_latency
from onnxproof.request.option import Expected
from onnxproof.request.thresholds import LatencyPolicy, Policy

# --- statistics -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "count"), [(0.9, 64), (0.95, 130), (0.99, 662)])
def test_a_percentile_needs_its_samples(share, count):
    assert needed(share) == count
    samples = np.arange(count)
    assert percentile(samples, share) is not None
    assert percentile(samples[:-1], share) is None


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_bounds_of_a_percentile_hold_it(share):
    generator = np.random.default_rng(1)
    truth = -np.log(1 - share)
    found = [percentile(generator.exponential(size=700), share) for _ in range(500)]
    assert np.mean([p.high >= truth for p in found]) >= 0.98
    assert np.mean([p.low <= truth for p in found]) >= 0.98
    assert all(p.low <= p.value <= p.high for p in found)


def noisy_blocks(generator, rounds, ratio):
    """Blocks of equal windows on a machine that drifts, is interrupted and spreads widely."""
    drift = np.exp(np.cumsum(generator.normal(0, 0.02, rounds)))
    one, other = (
        np.exp(generator.normal(0, 0.05, rounds)) * (1 + 3 * (generator.random(rounds) < 0.15)) for _ in range(2)
    )
    return ratio * drift * one, drift * other


@pytest.mark.parametrize("ratio", [1.0, 2.0, 0.1])
@pytest.mark.parametrize("rounds", [16, 60, 200])
def test_the_interval_holds_a_known_ratio_on_a_bad_machine(ratio, rounds):
    generator = np.random.default_rng(rounds)
    found = [ratio_interval(*noisy_blocks(generator, rounds, ratio)) for _ in range(100)]
    assert sum(i.low <= ratio <= i.high for i in found) >= 95
    assert all(i.low <= i.ratio <= i.high for i in found)


def test_drift_that_hits_both_cancels():
    drift = np.linspace(1, 10, 100)
    found = ratio_interval(3 * drift, drift)
    assert found.low == pytest.approx(3.0)
    assert found.high == pytest.approx(3.0)


def test_too_few_rounds_give_no_interval_and_unpaired_ones_are_refused():
    assert ratio_interval(np.ones(7), np.ones(7)) is None
    with pytest.raises(ValueError, match="as many of one as of the other"):
        ratio_interval(np.ones(9), np.ones(10))


# --- the timed loop ---------------------------------------------------------------------------------------------------


class FakeMachine:
    """A clock that moves when something is called, and not otherwise."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[str] = []
        self.collecting: list[bool] = []

    def clock(self) -> int:
        return self.now

    def contender(self, name, nanoseconds):
        def call():
            self.calls.append(name)
            self.collecting.append(gc.isenabled())
            count = self.calls.count(name)
            self.now += nanoseconds(count) if callable(nanoseconds) else nanoseconds
            return f"{name} {count}"

        return Timed(name, call)

    def harness(self, times, need, **options):
        timed = [self.contender(name, spent) for name, spent in times.items()]
        return Harness(timed, need, clock=self.clock, sleep=lambda seconds: None, **options)


def order_of_blocks(calls, start):
    """Who came after whom."""
    blocks = [calls[start]]
    for before, now in pairwise(calls[start:]):
        if before != now:
            blocks.append(now)
    return blocks


def rounds_of(seed):
    machine = FakeMachine()
    run = machine.harness({"a": 10_000_000, "b": 10_000_000, "c": 10_000_000}, Need(0.2, 20, budget=100), seed=seed)
    measured = run.run()
    warm = sum(m.warmup + 1 for m in measured.values())
    return np.array(machine.calls[warm:]).reshape(-1, 3).tolist()


def test_every_round_has_every_contender_once_in_random_order():
    rounds = rounds_of(seed=0)
    assert len(rounds) == 20
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len({tuple(one) for one in rounds}) > 3
    assert rounds == rounds_of(seed=0)
    assert rounds != rounds_of(seed=1)


def test_blocks_fill_equal_windows():
    machine = FakeMachine()
    measured = machine.harness({"slow": 20_000_000, "fast": 1_000_000}, Need(0.1, 10, budget=100)).run()
    assert measured["slow"].per_block == 1
    assert measured["fast"].per_block == 20
    assert len(measured["slow"].blocks) == len(measured["fast"].blocks)


@pytest.mark.parametrize(("min_time", "min_count", "rounds"), [(1.0, 1, 100), (0.01, 50, 50), (0.0, 0, 16)])
def test_a_minimum_time_and_a_minimum_count_and_enough_rounds(min_time, min_count, rounds):
    machine = FakeMachine()
    measured = machine.harness({"a": 10_000_000, "b": 10_000_000}, Need(min_time, min_count, budget=100)).run()
    assert {len(m.blocks) for m in measured.values()} == {rounds}
    assert not any(m.cut for m in measured.values())


@pytest.mark.parametrize(("threads", "pauses"), [(1, 0), (2, 3)])
def test_threads_that_spin_are_waited_for(threads, pauses):
    """Two steps in which the process still uses a core, and one in which it does not."""
    machine, slept, spent = FakeMachine(), [], iter([0.0, 0.005, 0.005, 0.010, 0.010, 0.010] * 1000)
    timed = [replace(machine.contender("a", 10_000_000), threads=threads)]
    need = Need(0.0, 0, 5, budget=100)
    Harness(timed, need, clock=machine.clock, sleep=slept.append, spent=lambda: next(spent)).run()
    assert slept.count(harness.SETTLE_STEP) == 5 * pauses


def test_the_budget_ends_it_and_says_so():
    machine = FakeMachine()
    measured = machine.harness({"a": 100_000_000}, Need(10.0, 1000, budget=2.0)).run()
    assert measured["a"].cut
    assert 1 <= len(measured["a"].samples) < 1000


def test_warming_up_ends_when_times_stop_falling():
    machine = FakeMachine()
    falls = {"falling": lambda n: max(6_000_000, 60_000_000 - 2_000_000 * n)}
    measured = machine.harness(falls, Need(5.0, 10, budget=100)).run()["falling"]
    assert measured.steady
    assert measured.warmup >= 27
    assert max(measured.samples) == 6_000_000


def test_times_that_never_stop_falling_are_noticed():
    machine = FakeMachine()
    measured = machine.harness({"a": lambda n: int(8_000_000 * 0.98 ** min(n, 80))}, Need(0.1, 10, budget=100)).run()[
        "a"
    ]
    assert not measured.steady


def test_the_collector_sleeps_while_it_is_timed_and_wakes_up_after():
    machine = FakeMachine()
    measured = machine.harness({"a": 6_000_000}, Need(0.1, 20, budget=100)).run()["a"]
    assert not any(machine.collecting[measured.warmup + 1 :])
    assert gc.isenabled()


def test_outputs_of_timed_calls_are_handed_out():
    machine, seen = FakeMachine(), []
    times = {"a": 10_000_000, "b": 10_000_000}
    machine.harness(times, Need(0.3, 30, budget=100), sampled=lambda name, value: seen.append((name, value))).run()
    names = [name for name, _ in seen]
    assert names.count("a") == names.count("b") == 6  # rounds 0, 1, 2, 4, 8 and 16
    assert len({value for _, value in seen}) == len(seen)


def test_what_timing_costs_is_measured_and_taken_off_the_blocks():
    machine = FakeMachine()
    ticks = iter(range(10**9))
    timed = Harness(
        [machine.contender("a", 10_000_000)],
        Need(0.1, 10, budget=1e9),
        clock=lambda: machine.now + 50 * next(ticks),
        sleep=lambda seconds: None,
    )
    measured = timed.run()["a"]
    assert measured.samples[0] == 10_000_050
    assert measured.blocks[0] == 10_000_000
    assert harness.resolution(lambda: 1000 * (next(ticks) // 3)) == 1000


# --- scenarios --------------------------------------------------------------------------------------------------------


def test_a_stall_delays_everyone_who_waits_behind_it():
    """The server's latency counts from the arrival: a loop that waits for the answer would see one slow request."""
    machine = FakeMachine()
    stall = machine.contender("model", lambda n: 100_000_000 if n == 11 else 1_000_000)

    def sleep(seconds):
        machine.now += round(seconds * 1e9)

    offsets = [2_000_000 * i for i in range(200)]
    served = scenarios.serve(stall.call, offsets, clock=machine.clock, sleep=sleep)
    assert served.latencies[10] == 100_000_000
    assert served.latencies[11] == 99_000_000  # arrived 2 ms after the stall began, waited 98 ms, took 1 ms
    assert (served.latencies > 1_000_000).sum() == 99
    assert served.latencies[-1] == 1_000_000
    assert served.backlog == 0.0
    alone = np.mean([1_000_000] * 199 + [100_000_000])  # what a loop that waits for each answer would say
    assert served.latencies.mean() > 10 * alone


def test_more_requests_than_can_be_answered_leave_a_backlog():
    machine = FakeMachine()

    def sleep(seconds):
        machine.now += round(seconds * 1e9)

    call = machine.contender("model", 2_000_000).call
    served = scenarios.serve(call, [1_000_000 * i for i in range(100)], clock=machine.clock, sleep=sleep)
    assert served.backlog == pytest.approx(0.5, abs=0.02)


def test_workers_share_the_requests_and_their_errors_are_not_lost():
    answered = []
    served = scenarios.serve(lambda: answered.append(1), [0] * 50, workers=4)
    assert len(answered) == len(served.latencies) == 50
    assert (served.latencies > 0).all()

    def fails():
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        scenarios.serve(fails, [0] * 5, workers=2)


def test_arrivals_have_the_rate_and_depend_on_the_seed():
    offsets = scenarios.arrivals(200.0, 5000, seed=1)
    assert offsets[-1] / 1e9 == pytest.approx(25.0, rel=0.05)
    assert (np.diff(offsets) >= 0).all()
    assert offsets.tolist() == scenarios.arrivals(200.0, 5000, seed=1).tolist()
    assert offsets.tolist() != scenarios.arrivals(200.0, 5000, seed=2).tolist()


def test_a_burst_keeps_every_worker_busy():
    calls = []
    bursts = scenarios.Bursts(3)
    timed = bursts.timed("a", lambda: calls.append(1), harness.nullcontext, typical_ns=1_000_000)
    timed.call()
    bursts.close()
    assert timed.calls == len(calls) == 15
    assert levels(1) == [1]
    assert levels(6) == [1, 2, 4, 6]


# --- records and their judgement --------------------------------------------------------------------------------------

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
    ("code", "latency", "limits", "severity"),
    [(code, *case) for code, cases in CASES.items() for case in cases],
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
    again = decode(json.loads(json.dumps({**plain(latency), "from_the_future": 1})), Latency)
    assert again.runs == latency.runs
    assert again.speedup == latency.speedup
    assert again.baseline.runs[0].percentiles == BASELINE.runs[0].percentiles
    assert plain(again.runs[0])["p99_ms"] is None
    many = thinned(list(range(100_001)))
    assert len(many) <= KEPT_SAMPLES
    assert many[:2] == (0, 51)
    assert thinned([3, 1, 2]) == (3, 1, 2)


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


# --- onnxruntime's profile --------------------------------------------------------------------------------------------


def test_times_of_a_node_are_added_up_without_the_first_runs():
    events = [{"cat": "Session", "name": "model_run", "dur": 9}]
    for run in range(10):
        spent = 1000 if run < slow.WARM_RUNS else 4
        events += [
            {"cat": "Node", "name": f"a{SUFFIX}", "dur": spent, "args": {"op_name": "Gemm", "provider": "CPU"}},
            {"cat": "Node", "name": f"b{SUFFIX}", "dur": 1, "args": {"op_name": "Relu", "provider": "CPU"}},
        ]
    profile = slow.summarise(slow.collect(node_times(events), 10), 10, None, 1, {})
    assert [(n.node, n.op, n.share, n.ms) for n in profile.nodes] == [
        ("a", "Gemm", 0.8, 0.004),
        ("b", "Relu", 0.2, 0.001),
    ]
    assert profile.ops["Gemm"] == OperatorShare(0.8, 1.0)


# --- whole runs -------------------------------------------------------------------------------------------------------

QUICK = {"min_time": 0.02, "min_count": 20, "threads": 1}


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> onnxproof.Proof:
    """A small transformer, timed in this process at two sizes."""
    out = tmp_path_factory.mktemp("timed")
    return onnxproof.bench(
        *models.transformer(), batch_sizes=[1, 4], also=["threads=1,optimization=disable"], out=out, **QUICK
    )


def test_a_run_has_what_the_contract_says(timed):
    data = json.loads(timed.dumps())
    jsonschema.validate(data, schema())
    latency = data["latency"]
    assert {(r["contender"], r["batch"]) for r in latency["runs"]} == {
        (name, batch)
        for name in ("pytorch", "onnxruntime", "onnxruntime[threads=1,optimization=disable]")
        for batch in (1, 4)
    }
    for run in latency["runs"]:
        assert run["samples"]
        assert run["count"] >= 20
        assert run["p50_ms"] > 0
        assert run["max_ms"] >= run["p50_ms"]
        assert run["throughput"] > 0
        assert run["first_ms"] > 0
        assert run["compared"] >= 1
        assert (run["p99_ms"] is None) == (run["count"] < 662)
        assert (run["p90_ms"] is None) == (run["count"] < 64)
    assert all(s["low"] <= s["ratio"] <= s["high"] for s in latency["speedup"])
    assert latency["machine"]["fingerprint"]
    assert next(r for r in latency["runs"] if r["contender"] == "onnxruntime")["load_ms"] > 0


def test_what_was_timed_was_compared(timed):
    names = [case.name for case in timed.cases if case.outputs]
    assert {name.split("/")[0] for name in names} == {"batch=1", "batch=4"}
    assert not codes(timed, "block")


def test_the_slowest_nodes_lead_to_modules_and_lines(timed):
    nodes = timed.latency.profile.nodes
    assert sum(node.share for node in nodes) <= 1.0 + 1e-9
    assert [n.share for n in nodes] == sorted((n.share for n in nodes), reverse=True)
    placed = [node for node in nodes if node.file]
    assert placed
    assert all(node.file.endswith("models.py") and node.line for node in placed)


def test_the_report_of_a_bench_is_calm_and_judges_again(timed, cli, tmp_path):
    timed.save(tmp_path / "proof.json")
    plain = cli("report", "proof.json")
    assert len(plain.stdout.splitlines()) <= 32
    assert "speed-up" in plain.stdout
    assert "slowest nodes" in plain.stdout
    assert cli("report", "proof.json", "--min-speedup", "0.0001").returncode in (0, 1)
    strict = cli("report", "proof.json", "--max-latency", "p50=1us")
    assert strict.returncode == 2  # there is no such unit
    strict = cli("report", "proof.json", "--max-latency", "p50=0.000001ms")
    assert strict.returncode == 1
    assert strict.stdout.startswith("BLOCK")
    assert "OX401" in strict.stdout
    shown = cli("report", "proof.json", "--max-latency", "p99.9=100s")
    assert "OX402" in shown.stdout


def test_timing_leaves_the_module_as_it_was(tmp_path):
    module, inputs = models.mlp()
    module.train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    onnxproof.bench(module, inputs, batch_sizes=[2], out=tmp_path, **QUICK)
    assert module.training
    assert all((before[name] == value).all() for name, value in module.state_dict().items())


def test_a_module_that_counts_its_calls_is_compared_from_where_it_began(tmp_path):
    proof = onnxproof.bench(*models.stateful(), batch_sizes=[1, 2], out=tmp_path, **QUICK)
    assert not codes(proof) & {"OX201", "OX207"}


def test_the_users_data_are_timed_where_there_are_enough_rows(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.random.default_rng(0).normal(size=(5, 20)).astype("float32"))
    data = str(tmp_path / "data.npz")
    proof = onnxproof.bench(*models.mlp(), batch_sizes=[4, 8], data=data, out=tmp_path, **QUICK)
    assert {case.name.split("/")[1] for case in proof.cases} == {"timed-data", "timed"}
    assert {case.group for case in proof.cases} == {"batch=4", "batch=8"}
    assert {r.batch for r in proof.latency.runs} == {4, 8}


def spoil(model: onnx.ModelProto) -> None:
    """One weight of the first matrix is off."""
    weight = next(t for t in model.graph.initializer if len(t.dims) == 2)
    array = onnx.numpy_helper.to_array(weight).copy()
    array[0] += 0.5
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))


def test_a_wrong_file_is_caught_by_what_was_timed(mutated, tmp_path):
    path = mutated("mlp", spoil)
    proof = onnxproof.bench(*models.mlp(), onnx=path, batch_sizes=[2], out=tmp_path, **QUICK)
    assert proof.verdict == "block"
    assert "OX201" in codes(proof, "block")


def test_a_wrong_second_file_is_noted_and_does_not_gate(mutated, exported, tmp_path):
    good, wrong = exported("mlp"), mutated("mlp", spoil)
    proof = onnxproof.bench(*models.mlp(), onnx=good, against=wrong, batch_sizes=[2], out=tmp_path, **QUICK)
    assert "OX418" in codes(proof, "note")
    assert not codes(proof, "block")
    again = onnxproof.bench(*models.mlp(), onnx=good, against=good, batch_sizes=[2], out=tmp_path, **QUICK)
    assert "OX418" not in codes(again)
    assert {r.contender for r in again.latency.runs} == {"pytorch", "onnxruntime", "onnxruntime:model.onnx"}


@pytest.mark.slow
def test_lengths_binding_and_offline(tmp_path):
    proof = onnxproof.bench(
        *models.transformer(),
        dynamic={"ids": {0: "batch", 1: "seq"}},
        batch_sizes=[2],
        lengths={"seq": [3, 12]},
        also=["binding=yes"],
        scenario="offline",
        concurrency=2,
        out=tmp_path,
        **QUICK,
    )
    runs = proof.latency.runs
    assert {(r.sizes["batch"], r.sizes["seq"]) for r in runs} == {(2, 3), (2, 12)}
    assert {r.concurrency for r in runs if r.scenario == "offline"} == {1, 2}
    assert "OX418" not in codes(proof)
    assert not codes(proof, "block")
    with pytest.raises(UserError, match="no dynamic dimension is called 'width'"):
        onnxproof.bench(*models.mlp(), lengths={"width": [3]}, out=tmp_path, **QUICK)


def test_a_server_is_timed_from_the_arrival(tmp_path):
    proof = onnxproof.bench(
        *models.mlp(), batch_sizes=[1], scenario="server", concurrency=2, rate=400.0, out=tmp_path, **QUICK
    )
    served = [r for r in proof.latency.runs if r.scenario == "server"]
    assert {(r.contender, r.concurrency) for r in served} == {
        (name, workers) for name in ("pytorch", "onnxruntime") for workers in (1, 2)
    }
    assert all(r.rate == 400.0 and r.waiting_ms >= 0 for r in served)


def test_a_baseline_turns_it_into_a_regression_check(timed, tmp_path):
    data = json.loads(timed.dumps())
    for run in data["latency"]["runs"]:
        for bound in run["percentiles"].values():
            for end in bound:
                bound[end] /= 1000
    (tmp_path / "old.json").write_text(json.dumps(data))
    module, inputs = models.transformer()
    proof = onnxproof.bench(module, inputs, batch_sizes=[1], baseline=tmp_path / "old.json", out=tmp_path, **QUICK)
    assert "OX408" in codes(proof, "review")
    assert "OX409" not in codes(proof)
    without = {**data, "latency": None}
    (tmp_path / "none.json").write_text(json.dumps(without))
    with pytest.raises(UserError, match="has no times"):
        onnxproof.bench(module, inputs, baseline=tmp_path / "none.json", out=tmp_path, **QUICK)


def test_without_a_compiler_torch_compile_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    proof = onnxproof.bench(*models.mlp(), batch_sizes=[1], compile=True, out=tmp_path, **QUICK)
    note = next(f for f in proof.findings if f.code == "OX417")
    assert "C++ compiler" in note.message
    assert note.severity == "note"


def test_tuning_offers_only_what_passes(tmp_path, exported):
    from onnxproof.artifact.file import read_artifact
    from onnxproof.latency.bench import Bench
    from onnxproof.latency.tune import settings_to_try, tune
    from onnxproof.pipeline.locating import SILENT
    from onnxproof.request.benchmark import BenchSettings
    from onnxproof.request.request import Request
    from onnxproof.subject.assembly import make_subject

    assert len(settings_to_try(10**9, 4)) == 6
    assert len(settings_to_try(1000, 2)) == 32
    module, inputs = models.mlp()
    bench = Bench(
        make_subject(module, inputs),
        read_artifact(exported("mlp")),
        Request(bench=BenchSettings(min_time=0.02, min_count=20)),
        SILENT,
    )
    asked = []

    def refuse(session):
        asked.append(session)
        return "block", 3

    tuned = tune(bench, bench.points[0], refuse, seconds=4.0)
    assert len(tuned) == len(asked)
    assert all(one.verdict == "block" and one.low > 1.0 for one in tuned)


@pytest.mark.slow
def test_the_command_line_end_to_end(cli, tmp_path):
    result = cli(
        "bench",
        target("mlp"),
        "--batch-sizes",
        "1,3",
        "--min-time",
        "0.02s",
        "--min-count",
        "20",
        "--threads",
        "1",
        "--max-latency",
        "p50=100s",
        "--max-memory",
        "10GB",
        "--json",
        "proof.json",
    )
    assert result.returncode in (0, 1), result.stderr
    proof = json.loads((tmp_path / "proof.json").read_text())
    jsonschema.validate(proof, schema())
    assert {f["code"] for f in proof["findings"] if f["severity"] == "block"} == set()
    assert "OX402" not in {f["code"] for f in proof["findings"]}
    assert all(run["memory"] > 0 for run in proof["latency"]["runs"])
    assert len(result.stdout.splitlines()) <= 35
    assert (tmp_path / "onnxproof-out" / "proof.json").is_file()


@pytest.mark.slow
def test_prove_can_time_too(cli, tmp_path):
    result = cli("prove", target("tutorial"), "--bench", "--batch-sizes", "1", "--threads", "1", "--json", "proof.json")
    assert result.returncode in (0, 1), result.stderr
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["planned"]
    assert proof["latency"]["runs"]
    assert "latency:" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--batch-sizes", ""), "there is no size to time"),
        (("--scenario", "burst"), "expected one of single, offline, server"),
        (("--against", "nowhere.onnx"), "there is no file nowhere.onnx"),
        (("--baseline", "nowhere.json"), "there is no proof nowhere.json"),
        (("--rate", "-3"), "above 0"),
        (("--also", "speed=high"), "--also 'speed=high'"),
    ],
)
def test_wrong_usage_is_told(cli, options, message):
    result = cli("bench", target("mlp"), "--min-time", "0.02s", *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
