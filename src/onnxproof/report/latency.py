"""The times of a proof as lines of text."""

from __future__ import annotations

from pathlib import Path

from onnxproof.policy.latency import choose_runs, choose_speedups
from onnxproof.policy.reliability import find_doubts
from onnxproof.proof.latency import BASELINE, SHIPPED, Latency, Run, Speedup, read_load
from onnxproof.request.thresholds import LatencyPolicy

SHOWN_ROWS = 10
SHOWN_NODES = 5
NAME_WIDTH = 28
NODE_WIDTH = 26


def tell_headline(latency: Latency, policy: LatencyPolicy, baseline: str) -> str:
    """What the clock says, in one sentence."""
    runs, gains = choose_runs(latency), choose_speedups(latency)
    if not runs:
        return "the session that ships was not timed"
    first = runs[0]
    p50 = first.milliseconds("p50")
    pace = (
        f"p50 {_show_ms(p50)} ms at batch {first.batch}{_grade(p50, policy)}" if p50 is not None else "too few samples"
    )
    busy = ", on a busy machine" if any(doubt.entry.disturbance for doubt in find_doubts(latency)) else ""
    crowded = ["the speed-up cannot be told now: other processes had the cores"] if first.crowded and not gains else []
    return "; ".join([*crowded, *([_tell_gain(gains, baseline)] if gains else []), pace]) + busy


def _tell_gain(gains: list[Speedup], baseline: str) -> str:
    """How it compares with the baseline over all sizes."""
    surely = [one for one in gains if one.low > 1]
    first = gains[0]
    told = f"{first.ratio:.3g}× [{first.low:.3g}, {first.high:.3g}] {baseline}'s speed at batch {first.batch}"
    if len(surely) == len(gains):
        return f"faster than {baseline}{' at every size' * (len(gains) > 1)}, {told}"
    if surely:
        batches = ", ".join(str(one.batch) for one in surely)
        return f"faster than {baseline} at batch {batches} only, {told}"
    if all(one.high < 1 for one in gains):
        return f"slower than {baseline}, {told}"
    return f"not distinguishable from {baseline}, {told}"


def _grade(p50: float, policy: LatencyPolicy) -> str:
    if "p50" in policy.max_latency:
        return ""
    return " (good)" if p50 < policy.good_ms else " (slow)" if p50 > policy.bad_ms else ""


def make_table(latency: Latency) -> list[str]:
    """One line per contender and size."""
    ratios = {(s.contender, read_load(s)): s for s in latency.speedup}
    runs = sorted(latency.runs, key=lambda r: (r.scenario != "single", r.batch, sorted(r.sizes.items()), r.concurrency))
    shown = runs if len(runs) <= SHOWN_ROWS else [r for r in runs if r.contender in (BASELINE, SHIPPED)][:SHOWN_ROWS]
    names = [_name_run(run) for run in shown]
    sizes = [",".join(f"{name}={size}" for name, size in run.sizes.items()) or f"batch={run.batch}" for run in shown]
    wide = min(NAME_WIDTH, max((len(name) for name in names), default=0))
    size = max([*(len(text) for text in sizes), 5])
    head = (
        f"  {'size':<{size}}  {'contender':<{wide}}  p50 ms  p90 ms  p95 ms  p99 ms  cpu ms   items/s  speed-up [95 %]"
    )
    lines = ["", head]
    for run, name, where in zip(shown, names, sizes, strict=True):
        ratio = ratios.get((run.contender, read_load(run)))
        numbers = "  ".join(f"{_show_ms(run.milliseconds(p)):>6}" for p in ("p50", "p90", "p95", "p99"))
        numbers += f"  {_show_ms(run.cpu_ms):>6}"
        gain = f"{ratio.ratio:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]" if ratio else ""
        lines.append(
            f"  {where:<{size}}  {name[:wide]:<{wide}}  {numbers}  {_show_ms(run.throughput):>8}  {gain}".rstrip()
        )
    if len(shown) < len(runs):
        lines.append(f"  … and {len(runs) - len(shown)} more rows in the proof")
    return lines


def tell_tokens(latency: Latency, baseline: str) -> list[str]:
    """Of a model with a cache: how fast a text goes on, and how long its first token takes; not where others had the cores."""
    compared = [
        one.sizes for one in latency.speedup if one.contender == SHIPPED and {"past", "seq"} <= one.sizes.keys()
    ]
    cached = [run for run in latency.runs if run.sizes in compared and run.contender in (BASELINE, SHIPPED)]
    lines = []
    for batch in sorted({run.batch for run in cached}):
        sides = {(run.contender, run.sizes["seq"] > 1): run for run in cached if run.batch == batch}
        if len(sides) == 4:
            speed = [
                f"{name} {_show_ms(sides[one, False].throughput)}"
                for name, one in ((baseline, BASELINE), (SHIPPED, SHIPPED))
            ]
            first = [_show_ms(sides[one, True].mean_ms) for one in (BASELINE, SHIPPED)]
            long = sides[SHIPPED, True].sizes
            lines.append(
                f"  batch {batch}: {', '.join(speed)} tokens per second; the first after {long['past'] + long['seq']} tokens in "
                f"{' and '.join(first)} ms"
            )
    return ["", *lines] if lines else []


def tell_setup(latency: Latency, baseline: str) -> list[str]:
    """How it was measured, in one line, and what loading and memory cost in another."""
    machine, threads = latency.machine, latency.settings.threads
    lines = [
        f"  {machine.cpu}, {machine.cores} cores, {threads} threads on both sides; – where the samples are too few"
    ]
    first = next(iter(latency.of(SHIPPED)), None)
    if first is not None and first.load_ms is not None:
        peak = max((run.memory or 0 for run in latency.of(SHIPPED)), default=0)
        theirs = max((run.memory or 0 for run in latency.of(BASELINE)), default=0)
        memory = f", peak memory {peak / 1e6:.0f} MB ({baseline} {theirs / 1e6:.0f} MB)" if peak else ""
        lines.append(f"  session {_show_ms(first.load_ms)} ms, first run {_show_ms(first.first_ms)} ms{memory}")
    return lines


def list_nodes(latency: Latency) -> list[str]:
    """The slowest nodes of the session that ships."""
    profile = latency.profile
    if profile is None or not profile.nodes:
        return []
    lines = ["", f"  slowest nodes at batch {profile.batch} (onnxruntime's profile)"]
    for node in profile.nodes[:SHOWN_NODES]:
        place = f"{Path(node.file).name}:{node.line}" if node.file else ""
        where = "  ".join(part for part in (node.module or "", place, (node.text or "")[:48]) if part)
        lines.append(
            f"    {node.share:>4.0%}  {_show_ms(node.ms):>6} ms  {node.op:<16} {node.node[:NODE_WIDTH]:<{NODE_WIDTH}}  {where}".rstrip()
        )
    return lines


def _name_run(run: Run) -> str:
    if run.scenario == "single":
        return run.contender
    return f"{run.contender} {run.scenario}×{run.concurrency}"


def _show_ms(value: float | None) -> str:
    """Milliseconds, or how many a second, with three digits."""
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
