"""What speaks against the numbers: derived from the record alone, each with a code of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from onnxproof.findings import Finding, found
from onnxproof.proof.latency import BASELINE, SHIPPED, Latency, Run

# p90 over p50 from which times count as unstable.
SPREAD = 1.5
# Cores that other processes may use.
OTHERS = 0.25
STEAL = 0.02
CLOCK_STEPS = 100
# Frequency after over frequency before.
SLOWED = 0.9


def find_doubts(latency: Latency) -> list[Finding]:
    """All of them, one per kind."""
    watched = [run for run in latency.runs if run.contender in (BASELINE, SHIPPED)]
    return [
        *_judge_spread(watched),
        *_judge_count(watched),
        *_judge_load(latency),
        *_judge_clock(latency, watched),
        *_judge_threads(latency, watched),
        *_judge_throttling(latency),
        *_judge_warm_up(watched),
    ]


def name_place(run: Run) -> str:
    """`onnxruntime at batch 8`."""
    workers = f" with {run.concurrency} workers" if run.scenario != "single" else ""
    return f"{run.contender} at batch {run.batch}{workers}"


def _judge_spread(runs: list[Run]) -> Iterator[Finding]:
    alone = {name_place(run): (run.p50_ms, run.p90_ms) for run in runs if run.scenario == "single"}
    spreads = {name: p90 / p50 for name, (p50, p90) in alone.items() if p50 and p90 and p90 / p50 > SPREAD}
    if spreads:
        worst = max(spreads, key=lambda name: spreads[name])
        message = f"times spread widely: p90 of {worst} is {spreads[worst]:.1f} times its p50"
        yield found("OX410", message, evidence={"spread": spreads})


def _judge_count(runs: list[Run]) -> Iterator[Finding]:
    cut = {name_place(run): run.count for run in runs if run.cut}
    if cut:
        name = min(cut, key=lambda name: cut[name])
        yield found("OX411", f"the budget ended it early: {name} has {cut[name]} samples", evidence={"samples": cut})


def _judge_load(latency: Latency) -> Iterator[Finding]:
    machine = latency.machine
    if machine.others is not None and machine.others > OTHERS:
        message = f"other processes used {machine.others:.1f} of {machine.cores} cores while it was timed"
        crowded = {name_place(run): run.crowded for run in latency.runs if run.crowded}
        if crowded and not latency.speedup:
            message += ": no speed-up can be told"
        load = [machine.load_before, machine.load_after]
        yield found("OX412", message, evidence={"others": machine.others, "load": load, "crowded": crowded})
    elif machine.steal is not None and machine.steal > STEAL:
        message = f"the hypervisor took {machine.steal:.0%} of the time away while it was timed"
        yield found("OX412", message, evidence={"steal": machine.steal})


def _judge_clock(latency: Latency, runs: list[Run]) -> Iterator[Finding]:
    step = latency.machine.clock_ns
    for run in runs:
        p50 = run.milliseconds("p50")
        if p50 is not None and p50 * 1e6 < CLOCK_STEPS * step:
            message = (
                f"the clock moves in steps of {step:.0f} ns and a call of {name_place(run)} takes {p50 * 1e6:.0f} ns"
            )
            yield found("OX413", message, evidence={"clock_ns": step, "p50_ms": p50})
            return


def _judge_threads(latency: Latency, runs: list[Run]) -> Iterator[Finding]:
    cores = latency.machine.cores
    alone = [run for run in runs if (run.threads or 1) > cores]
    together = [run for run in runs if (run.threads or 1) * run.concurrency > cores and run.concurrency > 1]
    if alone:
        threads = alone[0].threads
        yield found("OX414", f"{threads} threads on {cores} cores", evidence={"threads": threads, "cores": cores})
    elif together:
        threads, workers = together[0].threads, together[0].concurrency
        message = f"{workers} workers of {threads} threads each on {cores} cores"
        yield found("OX414", message, evidence={"threads": threads, "workers": workers, "cores": cores})


def _judge_throttling(latency: Latency) -> Iterator[Finding]:
    machine = latency.machine
    if machine.throttled:
        message = f"the processor was slowed down {machine.throttled} times"
        yield found("OX415", message, evidence={"times": machine.throttled})
    elif machine.mhz_before and machine.mhz_after and machine.mhz_after < SLOWED * machine.mhz_before:
        message = f"the processor's frequency fell from {machine.mhz_before:.0f} to {machine.mhz_after:.0f} MHz"
        yield found("OX415", message, evidence={"before": machine.mhz_before, "after": machine.mhz_after})


def _judge_warm_up(runs: list[Run]) -> Iterator[Finding]:
    cold = [name_place(run) for run in runs if not run.steady and run.scenario == "single"]
    if cold:
        yield found("OX416", f"times of {cold[0]} were still falling when the warm-up ended", evidence={"runs": cold})
