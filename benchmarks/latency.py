"""How far the numbers of `onnxproof bench` can be trusted, measured in one run.

    python -m benchmarks.latency

1. Ratios that are known: a session against itself (1) and against one that runs the model twice (2). How often does the
   reported interval hold the true value, on the machine as it is and with a second process loading a core, beside a naive loop
   of 20 runs with a t-interval? 2. What does the harness cost per call beyond the bare `session.run`? 3. Do the slowest nodes agree
   with onnxruntime's own profile?
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn

from onnxproof.artifact.export import export
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.cases.plan import Case
from onnxproof.latency import machine
from onnxproof.latency.harness import Harness, Need, Timed, run_block
from onnxproof.latency.points import Point
from onnxproof.latency.profile import profile_session
from onnxproof.latency.statistics import bound_ratio
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import ExportOptions
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject

REPETITIONS = 100
NEED = Need(min_time=0.15, min_count=64, budget=20.0)
NAIVE_RUNS = 20
STUDENT_19 = 2.093
"""The 97.5 % quantile of Student's distribution with 19 degrees of freedom."""
OVERHEAD_ROUNDS, OVERHEAD_CALLS = 500, 200
TOP = 5
DOCS = Path(__file__).parents[1] / "docs" / "latency.md"


def mlp() -> nn.Module:
    """A call of a tenth of a millisecond or so."""
    torch.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU())]).eval()


def cnn() -> nn.Module:
    """Layers of very different cost, so that an order exists."""
    torch.manual_seed(0)
    widths = (8, 96, 64, 48, 32, 16, 4)
    layers = [m for a, b in pairwise(widths) for m in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)).eval()


def exported(module: nn.Module, example: torch.Tensor, folder: Path) -> Artifact:
    return export(make_subject(module, (example,)), folder / "model.onnx", ExportOptions(), lambda finding: None)


@contextmanager
def loaded_core(wanted: bool) -> Iterator[None]:
    """A second process that keeps one core busy."""
    if not wanted:
        yield
        return
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        yield
    finally:
        other.kill()
        other.wait()


# --- 1. coverage ------------------------------------------------------------------------------------------------------


def naive(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """What a plain loop says: the ratio of two means of 20 runs, one after the other, with a t-interval."""
    a, b = [0] * NAIVE_RUNS, [0] * NAIVE_RUNS
    run_block(first, a, time.perf_counter_ns)
    run_block(second, b, time.perf_counter_ns)
    ratio = float(np.mean(b) / np.mean(a))
    spread = math.sqrt(sum(np.var(x, ddof=1) / NAIVE_RUNS / np.mean(x) ** 2 for x in (a, b)))
    return ratio * (1 - STUDENT_19 * spread), ratio * (1 + STUDENT_19 * spread)


def coverage(session: onnxruntime.InferenceSession, feed: dict[str, Any], busy: bool) -> dict[str, Any]:
    """How often each interval holds the true ratio."""
    run = session.run

    def once() -> Any:
        return run(None, feed)

    def twice() -> Any:
        run(None, feed)
        return run(None, feed)

    contenders = {"one": once, "same": once, "twice": twice}
    held = {(method, truth): 0 for method in ("onnxproof", "naive") for truth in (1, 2)}
    widths: dict[int, list[float]] = {1: [], 2: []}
    before = machine.look()
    with loaded_core(busy):
        for seed in range(REPETITIONS):
            measured = Harness([Timed(name, call) for name, call in contenders.items()], NEED, seed=seed).run()
            for truth, name in ((1, "same"), (2, "twice")):
                interval = bound_ratio(measured[name].blocks, measured["one"].blocks, seed=seed)
                assert interval is not None  # there are at least min_rounds rounds
                held["onnxproof", truth] += interval.low <= truth <= interval.high
                widths[truth].append((interval.high - interval.low) / interval.value)
                low, high = naive(once, contenders[name])
                held["naive", truth] += low <= truth <= high
    others = machine.describe(before, machine.look()).others
    return {
        "busy": busy,
        "others": others,
        "held": {f"{method} {truth}": count for (method, truth), count in held.items()},
        "width": {str(truth): float(np.median(values)) for truth, values in widths.items()},
    }


# --- 2. overhead ------------------------------------------------------------------------------------------------------


def small_session(folder: Path) -> tuple[onnxruntime.InferenceSession, dict[str, Any]]:
    """A call of a few microseconds, against which the cost of timing shows."""
    example = torch.randn(1, 8)
    artifact = exported(nn.Linear(8, 8).eval(), example, folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(artifact.path, options), {"input": example.numpy()}


def overhead(session: onnxruntime.InferenceSession, feed: dict[str, Any]) -> dict[str, float]:
    """Microseconds per call beyond a bare loop, from blocks in turns; the median over many blocks."""
    run = session.run

    def call() -> Any:
        return run(None, feed)

    extra, bare_calls = [], []
    for _ in range(OVERHEAD_ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(OVERHEAD_CALLS):
            run(None, feed)
        bare = (time.perf_counter_ns() - began) / OVERHEAD_CALLS
        samples = [0] * OVERHEAD_CALLS
        began = time.perf_counter_ns()
        run_block(call, samples, time.perf_counter_ns)
        extra.append((time.perf_counter_ns() - began) / OVERHEAD_CALLS - bare)
        bare_calls.append(bare)
    return {"bare_us": float(np.median(bare_calls)) / 1e3, "extra_us": float(np.median(extra)) / 1e3}


# --- 3. slow nodes ----------------------------------------------------------------------------------------------------


def plain_profile(path: str, feed: dict[str, Any], folder: Path) -> list[str]:
    """The slowest nodes by onnxruntime's profile, added up without any code of ours."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "plain")
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for _ in range(50):
        session.run(None, feed)
    total: dict[str, float] = {}
    for event in json.loads(Path(session.end_profiling()).read_text()):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = event["name"].removesuffix("_kernel_time")
            total[name] = total.get(name, 0.0) + event["dur"]
    return sorted(total, key=lambda name: -total[name])[:TOP]


def slow_nodes(folder: Path) -> dict[str, Any]:
    """Our five slowest nodes beside onnxruntime's."""
    example = torch.randn(4, 8, 32, 32)
    artifact = exported(cnn(), example, folder)
    inputs = {"input": example.numpy()}
    point = Point(Case("batch=4"), inputs, 4, {"batch": 4})
    ours = profile_session(Onnxruntime(), artifact, SessionSettings(threads=1), {}, point)
    theirs = plain_profile(artifact.path, inputs, folder)
    return {
        "ours": [
            {"node": n.node, "op": n.op, "share": n.share, "module": n.module, "line": n.line} for n in ours.nodes[:TOP]
        ],
        "theirs": theirs,
        "common": len({n.node for n in ours.nodes[:TOP]} & set(theirs)),
    }


# --- the page ---------------------------------------------------------------------------------------------------------


def page(results: dict[str, Any]) -> str:
    rows = []
    for one in results["coverage"]:
        place = "a second process loads a core" if one["busy"] else "the machine as it is"
        for truth in (1, 2):
            rows.append(
                f"| {place} ({one['others']:.1f} cores used by others) | {truth} | {one['held'][f'onnxproof {truth}']} | "
                f"{one['held'][f'naive {truth}']} | {one['width'][str(truth)]:.1%} |"
            )
    slow = results["slow"]
    nodes = [
        f"| {n['share']:.0%} | {n['op']} | `{n['node']}` | {n['module']} | {'yes' if n['node'] in slow['theirs'] else 'no'} |"
        for n in slow["ours"]
    ]
    cost = results["overhead"]
    return "\n".join(
        [
            "# How far the times can be trusted",
            "",
            f"`make latency`, one run of {results['seconds']:.0f} s on {results['cpu']}, {results['cores']} cores, one thread.",
            "",
            f"**Ratios that are known**, {REPETITIONS} repetitions each. A session is timed against itself (true ratio 1) and against one that",
            "runs the model twice (true ratio 2). How often does the reported 95 % interval hold the truth? The naive loop times",
            f"{NAIVE_RUNS} runs of one, then {NAIVE_RUNS} of the other, and puts a t-interval around the ratio of the means.",
            "",
            "| | true ratio | onnxproof holds it | naive loop holds it | median width of our interval |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"**What timing costs**: {cost['extra_us']:.2f} µs per call beyond a bare loop over `session.run` ({cost['bare_us']:.1f} µs per call).",
            "",
            f"**Slowest nodes** of a small CNN: {slow['common']} of our {TOP} are among the {TOP} slowest of a plain onnxruntime profile of another run.",
            "",
            "| share | operator | node | module | in onnxruntime's top 5 |",
            "|---|---|---|---|---|",
            *nodes,
            "",
        ]
    )


def main() -> None:
    """Measure, print and keep."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        example = torch.randn(16, 256)
        artifact = exported(mlp(), example, Path(folder))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(artifact.path, options, providers=["CPUExecutionProvider"])
        feed = {"input": example.numpy()}
        results: dict[str, Any] = {
            "slow": slow_nodes(Path(folder)),
            "overhead": overhead(*small_session(Path(folder))),
            "coverage": [coverage(session, feed, busy) for busy in (False, True)],
        }
    look = machine.look()
    described = machine.describe(look, look)
    results |= {"cpu": described.cpu, "cores": described.cores, "seconds": time.perf_counter() - began}
    text = page(results)
    print(text)
    DOCS.write_text(text, encoding="utf-8")
    DOCS.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
