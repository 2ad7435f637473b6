"""Times become findings: what is said, about which run, and what a limit's interval leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.policy.latency import choose_runs, choose_speedups, judge_latency, show_interval
from onnxproof.proof.latency import Earlier
from onnxproof.request.thresholds import LatencyPolicy
from policy.times import gain, latency, run


def told(times, gate=lambda comparison: None, **limits):
    return {f.code: f for f in judge_latency(times, LatencyPolicy(**limits), gate, "PyTorch")}


def test_a_limit_is_broken_by_the_worst_run():
    finding = told(latency(run(5.0), run(9.0, batch=8)), max_latency={"p50": 4.0})["OX401"]
    assert finding.message == "p50 of onnxruntime at batch 8 is 9 ms [8.82, 9.18], over the limit of 4 ms"
    evidence = {"limit_ms": 4.0, "value_ms": 9.0, "low_ms": 9.0 * 0.98, "high_ms": 9.0 * 1.02, "batches": [1, 8]}
    assert finding.evidence == evidence


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (latency(run(4.0)), "onnxruntime at batch 1: p50 is between 3.92 and 4.08 ms"),
        (latency(run(percentiles={})), "onnxruntime at batch 1: 100 samples do not support p50"),
        (latency(run(contender="pytorch")), "the session that ships was not timed"),
    ],
)
def test_a_limit_that_the_interval_holds_is_not_shown(times, why):
    assert told(times, max_latency={"p50": 4.0})["OX402"].message == f"p50 ≤ 4 ms is not shown: {why}"


@pytest.mark.parametrize("limits", [{"max_latency": {"p50": 4.0}}, {"min_speedup": 1.0}, {"max_memory": 1}])
def test_a_promise_about_what_was_not_timed_is_not_shown(limits):
    assert list(told(None, **limits)) == ["OX402"]
    assert told(None) == {}


def test_memory_is_that_of_the_run_that_needs_most():
    times = latency(run(memory=10**6), run(batch=8, memory=3 * 10**6))
    finding = told(times, max_memory=2 * 10**6)["OX407"]
    assert finding.message == "onnxruntime at batch 8 needs 3 MB, over the limit of 2 MB"
    assert told(times, max_memory=3 * 10**6) == {}
    assert "processes of its own" in told(latency(), max_memory=1)["OX402"].message


@pytest.mark.parametrize(
    ("speedup", "code", "message"),
    [
        ((gain(1.2, 1.1, 1.3), gain(1.1, 1.0, 1.2, 8)), "OX406", "1.1 [1, 1.2] at batch 8, below the promised 1.5"),
        ((gain(1.6, 1.4, 1.8),), "OX402", "a speed-up of 1.5 is not shown: it is 1.6 [1.4, 1.8] at batch 1"),
        ((), "OX402", "a speed-up of 1.5 is not shown: there is no ratio to PyTorch"),
    ],
)
def test_a_promised_speedup(speedup, code, message):
    assert told(latency(speedup=speedup), min_speedup=1.5)[code].message.endswith(message)
    assert told(latency(speedup=(gain(1.6, 1.5, 1.8),)), min_speedup=1.5) == {}


def test_who_promises_less_does_not_ask_for_more():
    slow = latency(speedup=(gain(0.7, 0.6, 0.8),))
    assert told(slow)["OX404"].severity == "review"
    assert told(slow, min_speedup=0.5)["OX404"].severity == "note"


def test_regressions_are_between_what_was_measured_both_times():
    earlier = Earlier("old.json", "here", (run(1.0), run(1.0, batch=8), run(1.0, "pytorch")), ())
    assert told(latency(run(2.0), baseline=earlier))["OX408"].evidence["regressions"] == [
        "p50 of onnxruntime at batch 1 was 1 ms and is 2 ms"
    ]
    assert told(latency(run(1.03), baseline=earlier)) == {}
    elsewhere = replace(run(2.0), sizes={"batch": 1, "length": 7})
    assert "nothing in common" in told(latency(elsewhere, baseline=earlier))["OX402"].message


def test_on_another_machine_only_ratios_are_compared():
    earlier = Earlier("old.json", "there", (run(1.0),), (gain(3.0, 2.9, 3.1),))
    findings = told(latency(run(2.0), speedup=(gain(2.0, 1.9, 2.1),), baseline=earlier))
    assert findings.keys() == {"OX408", "OX409"}
    lost = "the speed-up was 3 [2.9, 3.1] at batch 1 and is 2 [1.9, 2.1] at batch 1"
    assert findings["OX408"].evidence["regressions"] == [lost]
    assert told(latency(run(2.0), speedup=(gain(3.0, 2.9, 3.1),), baseline=earlier)).keys() == {"OX409"}


def test_a_contender_that_answers_differently_is_told_once():
    wrong = [run(contender="other.onnx", differing=("a", "b")), run(contender="other.onnx", differing=("c",)), run()]
    finding = told(latency(*wrong), gate=lambda one: f"{one} differs" if one != "b" else None)["OX418"]
    assert finding.message == "other.onnx answers differently: a differs"
    assert finding.evidence == {"messages": ["a differs", "c differs"]}


def test_of_a_server_the_runs_with_all_workers_count():
    alone, few = run(), run(scenario="server", concurrency=1)
    many = run(scenario="server", concurrency=4)
    assert choose_runs(latency(alone)) == [alone]
    assert choose_runs(latency(alone, few, many)) == [many]


def test_speedups_are_those_of_what_ships_smallest_batch_first():
    ours = (gain(2, 1, 3, 8), gain(2, 1, 3, 1), replace(gain(2, 1, 3, 4), contender="other.onnx"))
    assert [one.batch for one in choose_speedups(latency(speedup=ours))] == [1, 8]
    assert show_interval(gain(1.523, 1.48, 1.57, 8)) == "1.52 [1.48, 1.57] at batch 8"
