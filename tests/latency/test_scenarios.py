"""Requests that arrive when they arrive, and as many as possible."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

from latency.fake_machine import FakeMachine
from onnxproof.latency import scenarios
from onnxproof.request.benchmark import list_levels


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
    offsets = scenarios.draw_arrivals(200.0, 5000, seed=1)
    assert offsets[-1] / 1e9 == pytest.approx(25.0, rel=0.05)
    assert (np.diff(offsets) >= 0).all()
    assert offsets.tolist() == scenarios.draw_arrivals(200.0, 5000, seed=1).tolist()
    assert offsets.tolist() != scenarios.draw_arrivals(200.0, 5000, seed=2).tolist()


def test_a_burst_keeps_every_worker_busy():
    calls = []
    with ThreadPoolExecutor(3) as pool:
        timed = scenarios.make_burst(pool, 3, "a", lambda: calls.append(1), nullcontext, typical_ns=1_000_000)
        timed.call()
    assert timed.calls == len(calls) == 15


def test_numbers_of_workers_double_up_to_what_is_asked_for():
    assert list_levels(1) == [1]
    assert list_levels(6) == [1, 2, 4, 6]


def test_one_worker_can_do_what_its_calls_take():
    assert 100 < scenarios.measure_capacity(lambda: time.sleep(0.002), nullcontext, 2_000_000) < 500
