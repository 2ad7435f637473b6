"""What the clock said, judged: limits on the safe end of their intervals, slower than PyTorch, slower than before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.policy.reliability import doubts, place
from onnxproof.policy.slow_reasons import likely_reasons
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import SHIPPED, Latency, Run, Speedup
from onnxproof.request.judgement import SHOWN_PERCENTILES
from onnxproof.request.thresholds import LatencyPolicy

Gate = Callable[[Comparison], str | None]
"""What is wrong with a comparison, if it would gate."""
QUEUE_GROWS = 0.2
"""Share of requests still waiting when the last one came from which the queue counts as growing."""


def judge_latency(latency: Latency | None, policy: LatencyPolicy, gate: Gate, baseline: str) -> list[Finding]:
    """Findings about the times; none where nothing was timed and nothing was promised."""
    if latency is None:
        return _unmeasured(policy)
    runs = judged_runs(latency)
    findings = [
        *_limits(runs, policy),
        *_slow(runs, policy),
        *_speedups(latency, policy, baseline),
        *_memory(latency, policy),
        *_overloaded(latency),
        *_regressions(latency, policy, baseline),
        *_tuned(latency),
        *_absent(latency),
        *_wrong_contenders(latency, gate),
    ]
    return findings + doubts(latency)


def judged_runs(latency: Latency) -> list[Run]:
    """The runs that limits speak of: the session that ships, alone or, in the server scenario, with all its workers."""
    server = latency.of(SHIPPED, "server")
    if server:
        workers = max(run.concurrency for run in server)
        return [run for run in server if run.concurrency == workers]
    return latency.of(SHIPPED, "single")


def _unmeasured(policy: LatencyPolicy) -> list[Finding]:
    if not policy.max_latency and policy.min_speedup is None and policy.max_memory is None:
        return []
    return [found("OX402", "a limit was given and nothing was timed: it is not shown to hold")]


# --- limits -----------------------------------------------------------------------------------------------------------


def _limits(runs: Sequence[Run], policy: LatencyPolicy) -> Iterator[Finding]:
    for name, limit in policy.max_latency.items():
        broken, unknown = [], []
        for run in runs:
            bound = run.percentiles.get(name)
            if bound is None:
                unknown.append((run, f"{run.count} samples do not support {name}"))
            elif bound.value_ms > limit and bound.low_ms > limit:
                broken.append(run)
            elif bound.high_ms > limit:
                unknown.append((run, f"{name} is between {bound.low_ms:.4g} and {bound.high_ms:.4g} ms"))
        if broken:
            yield _broken(name, limit, broken)
        elif unknown or not runs:
            why = f"{place(unknown[0][0])}: {unknown[0][1]}" if unknown else "the session that ships was not timed"
            yield found("OX402", f"{name} ≤ {limit:g} ms is not shown: {why}", evidence={"limit_ms": limit})


def _broken(name: str, limit: float, runs: Sequence[Run]) -> Finding:
    worst = max(runs, key=lambda run: run.percentiles[name].value_ms)
    bound = worst.percentiles[name]
    message = (
        f"{name} of {place(worst)} is {bound.value_ms:.4g} ms [{bound.low_ms:.4g}, {bound.high_ms:.4g}], "
        f"over the limit of {limit:g} ms"
    )
    evidence = {"limit_ms": limit, "value_ms": bound.value_ms, "low_ms": bound.low_ms, "high_ms": bound.high_ms}
    return found("OX401", message, evidence={**evidence, "batches": [run.batch for run in runs]})


def _slow(runs: Sequence[Run], policy: LatencyPolicy) -> Iterator[Finding]:
    """The default opinion about p50; a limit for p50 takes its place. A large batch may take its time."""
    if "p50" in policy.max_latency or not runs:
        return
    smallest = min(run.batch for run in runs)
    slow = [r for r in runs if "p50" in r.percentiles and r.percentiles["p50"].high_ms > policy.bad_ms]
    if slow:
        first = slow[0]
        severity: Severity = "review" if first.batch == smallest else "note"
        message = f"p50 of {place(first)} is {first.milliseconds('p50'):.4g} ms, over {policy.bad_ms:g} ms"
        yield found("OX403", message, severity=severity, evidence={"batches": [run.batch for run in slow]})


def _memory(latency: Latency, policy: LatencyPolicy) -> Iterator[Finding]:
    if policy.max_memory is None:
        return
    known = [run for run in latency.of(SHIPPED) if run.memory is not None]
    if not known:
        yield found(
            "OX402", "--max-memory is not shown: memory is measured in processes of its own, which did not run here"
        )
        return
    worst = max(known, key=lambda run: run.memory or 0)
    if (worst.memory or 0) > policy.max_memory:
        message = f"{place(worst)} needs {(worst.memory or 0) / 1e6:.0f} MB, over the limit of {policy.max_memory / 1e6:.0f} MB"
        yield found("OX407", message, evidence={"bytes": worst.memory, "limit": policy.max_memory})


# --- against the baseline --------------------------------------------------------------------------------------------------


def shipped_speedups(latency: Latency) -> list[Speedup]:
    """Those of the session that ships, smallest batch first."""
    return sorted((one for one in latency.speedup if one.contender == SHIPPED), key=lambda one: one.batch)


def _speedups(latency: Latency, policy: LatencyPolicy, baseline: str) -> Iterator[Finding]:
    ours = shipped_speedups(latency)
    if policy.min_speedup is not None:
        yield from _gain(ours, policy.min_speedup, baseline)
    slower = [one for one in ours if one.high < 1]
    same = [one for one in ours if one.low <= 1 <= one.high]
    if slower:
        worst = min(slower, key=lambda one: one.ratio)
        reasons = likely_reasons(latency, worst)
        message = f"onnxruntime is slower than {baseline}: {shown(worst)}" + (
            f"; likely: {reasons[0].text}" if reasons else ""
        )
        severity: Severity | None = (
            None if policy.min_speedup is None else "note"
        )  # who promises less does not ask for more
        top = latency.profile.nodes[0] if latency.profile and latency.profile.nodes else None
        where = Where(node=top.node, module=top.module, file=top.file, line=top.line) if top else None
        help = " ".join([*(reason.help for reason in reasons[:3]), "`--tune` tries other settings."])
        evidence = {"speedup": [_plain(one) for one in slower], "reasons": [reason.text for reason in reasons]}
        yield found("OX404", message, severity=severity, where=where, evidence=evidence, help=help)
    if same:
        batches = ", ".join(str(one.batch) for one in same)
        message = f"not distinguishable from {baseline} at batch {batches}: {shown(same[0])}"
        yield found("OX405", message, evidence={"speedup": [_plain(one) for one in same]})


def _gain(ours: Sequence[Speedup], wanted: float, baseline: str) -> Iterator[Finding]:
    below = [one for one in ours if one.high < wanted]
    open_ = [one for one in ours if one.low < wanted <= one.high]
    if below:
        worst = min(below, key=lambda one: one.ratio)
        evidence = {"speedup": [_plain(one) for one in below], "wanted": wanted}
        yield found("OX406", f"the speed-up is {shown(worst)}, below the promised {wanted:g}", evidence=evidence)
    elif open_:
        worst = min(open_, key=lambda one: one.low)
        yield found(
            "OX402", f"a speed-up of {wanted:g} is not shown: it is {shown(worst)}", evidence={"wanted": wanted}
        )
    elif not ours:
        yield found(
            "OX402",
            f"a speed-up of {wanted:g} is not shown: there is no ratio to {baseline}",
            evidence={"wanted": wanted},
        )


def shown(one: Speedup) -> str:
    """`1.52 [1.48, 1.57] at batch 8`."""
    return f"{one.ratio:.3g} [{one.low:.3g}, {one.high:.3g}] at batch {one.batch}"


def _plain(one: Speedup) -> dict[str, Any]:
    return {"batch": one.batch, "ratio": one.ratio, "low": one.low, "high": one.high}


# --- against an earlier proof -----------------------------------------------------------------------------------------


def _regressions(latency: Latency, policy: LatencyPolicy, baseline: str) -> Iterator[Finding]:
    earlier = latency.baseline
    if earlier is None:
        return
    same_machine = earlier.fingerprint == latency.machine.fingerprint
    if not same_machine:
        message = f"{earlier.path} was measured on another machine: only ratios to {baseline} were compared"
        yield found("OX409", message, evidence={"here": latency.machine.fingerprint, "there": earlier.fingerprint})
    slower = list(_slower_runs(latency, policy)) if same_machine else list(_lost_speedup(latency, policy))
    compared = _common_runs(latency) if same_machine else _common_speedups(latency)
    if slower:
        more = f" (and {len(slower) - 1} more)" if len(slower) > 1 else ""
        evidence = {"regressions": slower, "baseline": earlier.path, "versions": dict(earlier.versions)}
        yield found("OX408", f"slower than {earlier.path}: {slower[0]}{more}", evidence=evidence)
    elif not compared:
        yield found("OX402", f"{earlier.path} has nothing in common with this measurement: no regression is ruled out")


Pair = tuple[Any, Any]


def _common_runs(latency: Latency) -> list[Pair]:
    assert latency.baseline is not None  # asked only with a baseline
    then = {
        (run.scenario, run.batch, run.concurrency, _key(run.sizes)): run
        for run in latency.baseline.runs
        if run.contender == SHIPPED
    }
    pairs = [(then.get((r.scenario, r.batch, r.concurrency, _key(r.sizes))), r) for r in latency.of(SHIPPED)]
    return [(old, new) for old, new in pairs if old is not None]


def _common_speedups(latency: Latency) -> list[Pair]:
    assert latency.baseline is not None  # asked only with a baseline
    then = {
        (s.scenario, s.batch, s.concurrency, _key(s.sizes)): s
        for s in latency.baseline.speedup
        if s.contender == SHIPPED
    }
    pairs = [(then.get((s.scenario, s.batch, s.concurrency, _key(s.sizes))), s) for s in shipped_speedups(latency)]
    return [(old, new) for old, new in pairs if old is not None]


def _key(sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def _slower_runs(latency: Latency, policy: LatencyPolicy) -> Iterator[str]:
    for old, new in _common_runs(latency):
        for name in SHOWN_PERCENTILES:
            before, now = old.percentiles.get(name), new.percentiles.get(name)
            if before and now and now.low_ms > before.high_ms and now.value_ms > policy.regression * before.value_ms:
                yield f"{name} of {place(new)} was {before.value_ms:.4g} ms and is {now.value_ms:.4g} ms"
                break


def _lost_speedup(latency: Latency, policy: LatencyPolicy) -> Iterator[str]:
    for old, new in _common_speedups(latency):
        if new.high < old.low and new.ratio * policy.regression < old.ratio:
            yield f"the speed-up was {shown(old)} and is {shown(new)}"


# --- the rest ---------------------------------------------------------------------------------------------------------


def _overloaded(latency: Latency) -> Iterator[Finding]:
    for run in judged_runs(latency):
        if run.scenario == "server" and (run.backlog or 0.0) > QUEUE_GROWS:
            message = f"{run.rate:.4g} requests per second are too many for {place(run)}: {run.backlog:.0%} were still waiting when the last came"
            yield found("OX419", message, evidence={"rate": run.rate, "backlog": run.backlog})
            return


def _tuned(latency: Latency) -> Iterator[Finding]:
    for best in (one for one in latency.tuned if one.verdict == "ship"):
        words = ", ".join(f"{key}={value}" for key, value in best.setting.items())
        message = (
            f"{words} is {best.ratio:.3g} [{best.low:.3g}, {best.high:.3g}] times faster at batch {best.batch} "
            f"and passes {best.cases} cases"
        )
        yield found("OX420", message, evidence={"setting": dict(best.setting), "batch": best.batch})


def _absent(latency: Latency) -> Iterator[Finding]:
    grouped: dict[tuple[str, str], list[int | None]] = {}
    for one in latency.absent:
        grouped.setdefault((one.what, one.why), []).append(one.batch)
    for (what, why), batches in grouped.items():
        at = f" at batch {', '.join(map(str, batches))}" if what in {r.contender for r in latency.runs} else ""
        yield found("OX417", f"{what} was not timed{at}: {why}", evidence={"what": what, "batches": batches})


def _wrong_contenders(latency: Latency, gate: Gate) -> Iterator[Finding]:
    wrong: dict[str, list[str]] = {}
    for run in latency.runs:
        messages: Iterable[str | None] = (gate(comparison) for comparison in run.differing)
        wrong.setdefault(run.contender, []).extend(message for message in messages if message is not None)
    for contender, found_ in wrong.items():
        if found_:
            yield found("OX418", f"{contender} answers differently: {found_[0]}", evidence={"messages": found_[:5]})
