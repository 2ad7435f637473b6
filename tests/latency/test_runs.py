"""Runs of the proof follow from what was measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from onnxproof.cases.plan import Case
from onnxproof.latency.harness import Measured
from onnxproof.latency.points import Point
from onnxproof.latency.runs import measure_speedups, run_offline, run_server, run_single
from onnxproof.latency.scenarios import Served

POINT = Point(Case("a", {"batch": 4}, "normal"), {}, 4, {"batch": 4})
SESSION = SimpleNamespace(name="onnxruntime", load_ms=7.0, first_ms=3.0, threads=2)


def test_a_run_has_milliseconds_and_only_the_percentiles_it_supports():
    measured = Measured([2_000_000] * 100, blocks=[2e6] * 20, per_block=5, warmup=9, steady=False)
    run = run_single(SESSION, POINT, measured, 3, ())
    assert (run.contender, run.batch, run.threads, run.load_ms, run.compared) == ("onnxruntime", 4, 2, 7.0, 3)
    assert (run.p50_ms, run.p90_ms, run.p99_ms) == (2.0, 2.0, None)
    assert (run.min_ms, run.mean_ms, run.max_ms) == (2.0, 2.0, 2.0)
    assert run.throughput == pytest.approx(2000.0)
    assert (run.calls_per_block, run.warmup, run.steady, run.count) == (5, 9, False, 100)


@pytest.mark.parametrize(("least", "cut"), [(10, False), (11, True)])
def test_a_server_did_what_it_did_in_its_time(least, cut):
    served = Served(np.full(10, 5_000_000), np.full(10, 1_000_000), backlog=0.5, seconds=2.0)
    run = run_server(SESSION, POINT, served, 3, rate=8.0, least=least)
    assert (run.scenario, run.concurrency, run.rate, run.waiting_ms, run.backlog) == ("server", 3, 8.0, 1.0, 0.5)
    assert run.throughput == 20.0
    assert run.cut is cut


def test_a_burst_is_shared_by_its_calls_and_has_no_percentiles():
    run = run_offline(SESSION, POINT, Measured([12_000_000] * 100, blocks=[1e6]), workers=2, calls=12)
    assert (run.scenario, run.concurrency, run.mean_ms, run.percentiles) == ("offline", 2, 1.0, {})


def test_speedups_are_against_pytorch_where_rounds_suffice():
    measured = {"pytorch": Measured(blocks=[6.0] * 20), "onnxruntime": Measured(blocks=[2.0] * 20)}
    (one,) = measure_speedups(POINT, measured, 0, "offline", 2)
    assert (one.contender, one.rounds, one.scenario, one.concurrency) == ("onnxruntime", 20, "offline", 2)
    assert one.ratio == pytest.approx(3.0)
    few = {name: Measured(blocks=m.blocks[:3]) for name, m in measured.items()}
    assert list(measure_speedups(POINT, few, 0)) == []


def test_a_speedup_is_taken_from_rounds_in_which_both_had_the_cores():
    """PyTorch waits for cores in half of the rounds, and looks a hundred times slower there."""
    crowded = [i % 2 == 0 for i in range(40)]
    pytorch = Measured(blocks=[600.0 if busy else 6.0 for busy in crowded], crowded=crowded)
    ours = Measured(blocks=[2.0] * 40, crowded=[False] * 40)
    (one,) = measure_speedups(POINT, {"pytorch": pytorch, "onnxruntime": ours}, 0)
    assert one.rounds == 20
    assert one.ratio == pytest.approx(3.0)
    always = Measured(blocks=pytorch.blocks, crowded=[True] * 40)
    assert list(measure_speedups(POINT, {"pytorch": always, "onnxruntime": ours}, 0)) == []
