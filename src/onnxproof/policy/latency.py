"""What the clock said, judged: limits on the safe end of their intervals, slower than PyTorch, slower than before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.policy.reliability import find_doubts, name_place
from onnxproof.policy.slow_reasons import guess_reasons
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import SHIPPED, Latency, Run, Speedup, read_load
from onnxproof.request.thresholds import SHOWN_PERCENTILES, LatencyPolicy

# What is wrong with a comparison, if it would gate.
Gate = Callable[[Comparison], str | None]
T = TypeVar("T", Run, Speedup)
# Share of requests still waiting when the last one came from which the queue counts as growing.
QUEUE_GROWS = 0.2


def judge_latency(latency: Latency | None, policy: LatencyPolicy, gate: Gate, baseline: str) -> list[Finding]:
    """Findings about the times; none where nothing was timed and nothing was promised."""
    if latency is None:
        untold = [found("OX402", "a limit was given and nothing was timed: it is not shown to hold")]
        return untold if policy.promised else []
    runs = choose_runs(latency)
    return [
        *_judge_limits(runs, policy),
        *_judge_pace(runs, policy),
        *_judge_speedups(latency, policy, baseline),
        *_judge_memory(latency, policy),
        *_judge_load(latency),
        *_judge_regressions(latency, policy, baseline),
        *_tell_tuned(latency),
        *_tell_absent(latency),
        *_judge_contenders(latency, gate),
        *find_doubts(latency),
    ]


def choose_runs(latency: Latency) -> list[Run]:
    """The runs that limits speak of: the session that ships, alone or, in the server scenario, with all its workers."""
    server = latency.of(SHIPPED, "server")
    workers = max((run.concurrency for run in server), default=0)
    return [run for run in server if run.concurrency == workers] or latency.of(SHIPPED, "single")


def _judge_limits(runs: Sequence[Run], policy: LatencyPolicy) -> Iterator[Finding]:
    for name, limit in policy.max_latency.items():
        broken, unknown = [], []
        for run in runs:
            bound = run.percentiles.get(name)
            if bound is None:
                unknown.append(f"{name_place(run)}: {run.count} samples do not support {name}")
            elif bound.value_ms > limit and bound.low_ms > limit:
                broken.append(run)
            elif bound.high_ms > limit:
                unknown.append(f"{name_place(run)}: {name} is between {bound.low_ms:.4g} and {bound.high_ms:.4g} ms")
        if broken:
            yield _tell_broken(name, limit, broken)
        elif unknown or not runs:
            why = unknown[0] if unknown else "the session that ships was not timed"
            yield found("OX402", f"{name} ≤ {limit:g} ms is not shown: {why}", evidence={"limit_ms": limit})


def _tell_broken(name: str, limit: float, runs: Sequence[Run]) -> Finding:
    worst = max(runs, key=lambda run: run.percentiles[name].value_ms)
    bound = worst.percentiles[name]
    interval = f"[{bound.low_ms:.4g}, {bound.high_ms:.4g}]"
    message = f"{name} of {name_place(worst)} is {bound.value_ms:.4g} ms {interval}, over the limit of {limit:g} ms"
    evidence = {"limit_ms": limit, **asdict(bound), "batches": [run.batch for run in runs]}
    return found("OX401", message, evidence=evidence)


def _judge_pace(runs: Sequence[Run], policy: LatencyPolicy) -> Iterator[Finding]:
    """The default opinion about p50; a limit for p50 takes its place. A large batch may take its time."""
    if "p50" in policy.max_latency or not runs:
        return
    smallest = min(run.batch for run in runs)
    slow = [r for r in runs if "p50" in r.percentiles and r.percentiles["p50"].high_ms > policy.bad_ms]
    if slow:
        first = slow[0]
        severity: Severity = "review" if first.batch == smallest else "note"
        message = f"p50 of {name_place(first)} is {first.milliseconds('p50'):.4g} ms, over {policy.bad_ms:g} ms"
        yield found("OX403", message, severity=severity, evidence={"batches": [run.batch for run in slow]})


def _judge_memory(latency: Latency, policy: LatencyPolicy) -> Iterator[Finding]:
    if policy.max_memory is None:
        return
    known = [(run.memory, name_place(run)) for run in latency.of(SHIPPED) if run.memory is not None]
    memory, worst = max(known, key=lambda one: one[0], default=(None, ""))
    if memory is None:
        why = "memory is measured in processes of its own, which did not run here"
        yield found("OX402", f"--max-memory is not shown: {why}")
    elif memory > policy.max_memory:
        message = f"{worst} needs {memory / 1e6:.0f} MB, over the limit of {policy.max_memory / 1e6:.0f} MB"
        yield found("OX407", message, evidence={"bytes": memory, "limit": policy.max_memory})


def choose_speedups(latency: Latency) -> list[Speedup]:
    """Those of the session that ships, smallest batch first."""
    return sorted((one for one in latency.speedup if one.contender == SHIPPED), key=lambda one: one.batch)


def _judge_speedups(latency: Latency, policy: LatencyPolicy, baseline: str) -> Iterator[Finding]:
    ours = choose_speedups(latency)
    if policy.min_speedup is not None:
        yield from _judge_gain(ours, policy.min_speedup, baseline)
    slower = [one for one in ours if one.high < 1]
    same = [one for one in ours if one.low <= 1 <= one.high]
    if slower:
        # Who promises less does not ask for more.
        yield _tell_slower(latency, slower, None if policy.min_speedup is None else "note", baseline)
    if same:
        batches = ", ".join(str(one.batch) for one in same)
        message = f"not distinguishable from {baseline} at batch {batches}: {show_interval(same[0])}"
        yield found("OX405", message, evidence={"speedup": [_summarise(one) for one in same]})


def _tell_slower(latency: Latency, slower: Sequence[Speedup], severity: Severity | None, baseline: str) -> Finding:
    worst = min(slower, key=lambda one: one.ratio)
    reasons = guess_reasons(latency, worst)
    likely = f"; likely: {reasons[0].text}" if reasons else ""
    top = latency.profile.nodes[0] if latency.profile and latency.profile.nodes else None
    return found(
        "OX404",
        f"onnxruntime is slower than {baseline}: {show_interval(worst)}{likely}",
        severity=severity,
        where=Where(node=top.node, module=top.module, file=top.file, line=top.line) if top else None,
        evidence={"speedup": [_summarise(one) for one in slower], "reasons": [reason.text for reason in reasons]},
        help=" ".join([*(reason.help for reason in reasons[:3]), "`--tune` tries other settings."]),
    )


def _judge_gain(ours: Sequence[Speedup], wanted: float, baseline: str) -> Iterator[Finding]:
    below = [one for one in ours if one.high < wanted]
    unsure = [one for one in ours if one.low < wanted]
    if below:
        worst = min(below, key=lambda one: one.ratio)
        evidence = {"speedup": [_summarise(one) for one in below], "wanted": wanted}
        yield found(
            "OX406", f"the speed-up is {show_interval(worst)}, below the promised {wanted:g}", evidence=evidence
        )
    elif unsure or not ours:
        is_ = (
            f"it is {show_interval(min(unsure, key=lambda one: one.low))}"
            if unsure
            else f"there is no ratio to {baseline}"
        )
        yield found("OX402", f"a speed-up of {wanted:g} is not shown: {is_}", evidence={"wanted": wanted})


def show_interval(one: Speedup) -> str:
    """`1.52 [1.48, 1.57] at batch 8`."""
    return f"{one.ratio:.3g} [{one.low:.3g}, {one.high:.3g}] at batch {one.batch}"


def _summarise(one: Speedup) -> dict[str, Any]:
    return {"batch": one.batch, "ratio": one.ratio, "low": one.low, "high": one.high}


def _judge_regressions(latency: Latency, policy: LatencyPolicy, baseline: str) -> Iterator[Finding]:
    earlier = latency.baseline
    if earlier is None:
        return
    runs = _pair_common(earlier.runs, latency.of(SHIPPED))
    speedups = _pair_common(earlier.speedup, choose_speedups(latency))
    if earlier.fingerprint == latency.machine.fingerprint:
        compared, slower = bool(runs), list(_list_slower_runs(runs, policy))
    else:
        message = f"{earlier.path} was measured on another machine: only ratios to {baseline} were compared"
        yield found("OX409", message, evidence={"here": latency.machine.fingerprint, "there": earlier.fingerprint})
        compared, slower = bool(speedups), list(_list_lost_speedups(speedups, policy))
    if slower:
        more = f" (and {len(slower) - 1} more)" if len(slower) > 1 else ""
        evidence = {"regressions": slower, "baseline": earlier.path, "versions": dict(earlier.versions)}
        yield found("OX408", f"slower than {earlier.path}: {slower[0]}{more}", evidence=evidence)
    elif not compared:
        yield found("OX402", f"{earlier.path} has nothing in common with this measurement: no regression is ruled out")


def _pair_common(then: Iterable[T], now: Iterable[T]) -> list[tuple[T, T]]:
    """What was measured of the session that ships both times, under the same load and at the same sizes."""
    earlier = {read_load(one): one for one in then if one.contender == SHIPPED}
    return [(earlier[read_load(one)], one) for one in now if read_load(one) in earlier]


def _list_slower_runs(runs: Iterable[tuple[Run, Run]], policy: LatencyPolicy) -> Iterator[str]:
    for old, new in runs:
        for name in SHOWN_PERCENTILES:
            before, now = old.percentiles.get(name), new.percentiles.get(name)
            if before and now and now.low_ms > before.high_ms and now.value_ms > policy.regression * before.value_ms:
                yield f"{name} of {name_place(new)} was {before.value_ms:.4g} ms and is {now.value_ms:.4g} ms"
                break


def _list_lost_speedups(speedups: Iterable[tuple[Speedup, Speedup]], policy: LatencyPolicy) -> Iterator[str]:
    for old, new in speedups:
        if new.high < old.low and new.ratio * policy.regression < old.ratio:
            yield f"the speed-up was {show_interval(old)} and is {show_interval(new)}"


def _judge_load(latency: Latency) -> Iterator[Finding]:
    for run in choose_runs(latency):
        if run.scenario == "server" and (run.backlog or 0.0) > QUEUE_GROWS:
            message = f"{run.rate:.4g} requests per second are too many for {name_place(run)}: {run.backlog:.0%} were still waiting when the last came"
            yield found("OX419", message, evidence={"rate": run.rate, "backlog": run.backlog})
            return


def _tell_tuned(latency: Latency) -> Iterator[Finding]:
    for best in (one for one in latency.tuned if one.verdict == "ship"):
        words = ", ".join(f"{key}={value}" for key, value in best.setting.items())
        faster = f"{best.ratio:.3g} [{best.low:.3g}, {best.high:.3g}] times faster at batch {best.batch}"
        message = f"{words} is {faster} and passes {best.cases} cases"
        yield found("OX420", message, evidence={"setting": dict(best.setting), "batch": best.batch})


def _tell_absent(latency: Latency) -> Iterator[Finding]:
    for what, why in dict.fromkeys((one.what, one.why) for one in latency.absent):
        batches = [one.batch for one in latency.absent if (one.what, one.why) == (what, why)]
        at = f" at batch {', '.join(map(str, batches))}" if what in {r.contender for r in latency.runs} else ""
        yield found("OX417", f"{what} was not timed{at}: {why}", evidence={"what": what, "batches": batches})


def _judge_contenders(latency: Latency, gate: Gate) -> Iterator[Finding]:
    for contender in dict.fromkeys(run.contender for run in latency.runs):
        differing = [one for run in latency.runs if run.contender == contender for one in run.differing]
        told = [message for one in differing if (message := gate(one)) is not None]
        if told:
            yield found("OX418", f"{contender} answers differently: {told[0]}", evidence={"messages": told[:5]})
