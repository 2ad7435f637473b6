"""The timed loop, on a machine whose time is ours."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from latency.fake_machine import FakeMachine
from onnxproof.latency import harness
from onnxproof.latency.harness import Harness, Need


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
    calm = {"spent": lambda: next(spent), "waited": lambda: 0}
    Harness(timed, need, clock=machine.clock, sleep=slept.append, **calm).run()
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
    assert harness.measure_resolution(lambda: 1000 * (next(ticks) // 3)) == 1000


def test_a_busy_machine_gets_more_rounds_in_the_hope_of_calm_ones():
    machine, calm = FakeMachine(), {"now": 0}

    def waited() -> int:
        calm["now"] += 10**9  # every look finds that it has waited
        return calm["now"]

    crowded = machine.harness({"a": 10_000_000}, Need(0.0, 0, 5, budget=100), waited=waited).run()["a"]
    assert len(crowded.blocks) == 5 * harness.HOPE
    assert all(crowded.crowded)
