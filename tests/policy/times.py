"""Times made from data, for tests of what is said about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onnxproof.proof.latency import Bound, Latency, Machine, Run, Speedup

MACHINE = Machine("here", "a processor", 4, 8 * 10**9, clock_ns=30, overhead_ns=60, others=0.0, steal=0.0, throttled=0)


def bound(ms: float) -> Bound:
    return Bound(ms, ms * 0.98, ms * 1.02)


def run(p50: float = 2.0, contender: str = "onnxruntime", batch: int = 1, **changes: Any) -> Run:
    percentiles = {"p50": bound(p50), "p90": bound(p50 * 1.2)}
    made = Run(contender, batch, {"batch": batch}, "single", (), 100, percentiles=percentiles, threads=2)
    return replace(made, **changes)


def gain(ratio: float, low: float, high: float, batch: int = 1) -> Speedup:
    return Speedup(batch, "onnxruntime", ratio, low, high, 50, {"batch": batch})


def latency(*runs: Run, speedup: tuple[Speedup, ...] = (), machine: Machine = MACHINE, **changes: Any) -> Latency:
    return replace(Latency(runs or (run(),), speedup, machine), **changes)
