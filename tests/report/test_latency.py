"""The clock's words: faster only where the interval says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.proof.latency import BASELINE, SHIPPED, Latency, Profile, Run, SlowNode, Speedup
from onnxproof.report.latency import list_nodes, make_table, tell_headline, tell_tokens
from onnxproof.request.thresholds import LatencyPolicy
from proofs import make_latency


def gains(*ends: tuple[float, float]) -> Latency:
    """The session that ships at batches 1, 8, 32, with these intervals."""
    speedup = [Speedup(b, "onnxruntime", sum(e) / 2, *e) for b, e in zip((1, 8, 32), ends, strict=False)]
    return replace(make_latency(), speedup=tuple(speedup))


@pytest.mark.parametrize(
    ("timed", "said"),
    [
        (gains((1.5, 2.5), (1.2, 1.4)), "faster than PyTorch at every size, 2× [1.5, 2.5] PyTorch's speed at batch 1"),
        (gains((1.5, 2.5)), "faster than PyTorch, 2×"),
        (gains((0.5, 1.5), (1.2, 1.4)), "faster than PyTorch at batch 8 only"),
        (gains((0.5, 0.7)), "slower than PyTorch"),
        (gains((0.5, 1.5)), "not distinguishable from PyTorch"),
        (Latency((), ()), "the session that ships was not timed"),
    ],
)
def test_the_headline_says_no_more_than_the_interval(timed, said):
    assert tell_headline(timed, LatencyPolicy(), "PyTorch").startswith(said)


def test_the_table_has_a_line_for_each_run_and_leaves_out_what_is_not_known():
    timed = make_latency((1,))
    timed = replace(timed, runs=(replace(timed.runs[0], percentiles={}), timed.runs[1]))
    _, head, first, second = make_table(timed)
    assert head.split()[:2] == ["size", "contender"]
    assert first.split()[:6] == ["batch=1", "pytorch", *"––––"]
    assert second.rstrip().endswith("]")


def test_many_runs_leave_further_contenders_out():
    timed = make_latency((1, 2, 4, 8))
    others = tuple(replace(run, contender="another") for run in timed.runs)
    lines = make_table(replace(timed, runs=timed.runs + others))
    assert not any("another" in line for line in lines)
    assert lines[-1] == "  … and 8 more rows in the proof"


def test_slow_nodes_name_their_line():
    node = SlowNode("node_1", "MatMul", 0.5, 1.25, file="/home/me/model.py", line=7, text="x @ w")
    lines = list_nodes(replace(make_latency(), profile=Profile(1, {}, 3, (node,), {}, {})))
    assert lines[-1].split() == ["50%", "1.25", "ms", "MatMul", "node_1", "model.py:7", "x", "@", "w"]
    assert list_nodes(make_latency()) == []


def test_a_model_with_a_cache_is_told_in_tokens():
    prompt, step = {"batch": 1, "past": 1, "seq": 7}, {"batch": 1, "past": 5, "seq": 1}
    runs = [
        Run(one, 1, sizes, mean_ms=ms, throughput=1e3 / ms)
        for one, times in ((BASELINE, (8.0, 4.0)), (SHIPPED, (2.0, 1.0)))
        for sizes, ms in zip((prompt, step), times, strict=True)
    ]
    gains = tuple(Speedup(1, SHIPPED, 4.0, 3.0, 5.0, sizes=sizes) for sizes in (prompt, step))
    _, told = tell_tokens(Latency(tuple(runs), gains), "PyTorch")
    expected = "PyTorch 250, onnxruntime 1000 tokens per second; the first after 8 tokens in 8 and 2 ms"
    assert told.strip() == f"batch 1: {expected}"
    assert tell_tokens(Latency(tuple(runs[:3]), gains), "PyTorch") == [], "one of them was not timed"
    assert tell_tokens(Latency(tuple(runs), ()), "PyTorch") == [], "others had the cores"
    assert tell_tokens(make_latency(), "PyTorch") == []
