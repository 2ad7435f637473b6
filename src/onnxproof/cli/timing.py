"""Options about times: their declarations, and what they mean as settings and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from onnxproof.policy.latency import LatencyPolicy
    from onnxproof.request.benchmark import BenchSettings

BenchBatches = Annotated[
    str | None,
    typer.Option(
        "--batch-sizes", help="Batch sizes to time. Default 1,8,32,128 where the batch is dynamic.", show_default=False
    ),
]
BenchThreads = Annotated[
    int | None,
    typer.Option("--threads", help="Threads of PyTorch and of onnxruntime. Default: the cores.", show_default=False),
]
Lengths = Annotated[
    list[str] | None,
    typer.Option("--lengths", help="Sizes of a dynamic dimension: seq=16,128 (repeatable).", show_default=False),
]
MinTime = Annotated[str, typer.Option("--min-time", help="Timed calls for each contender and size last at least this.")]
MinCount = Annotated[int, typer.Option("--min-count", help="And they are at least this many.")]
BenchBudget = Annotated[str, typer.Option("--budget", help="Time for everything that is timed: 600s, 10m.")]
ScenarioOption = Annotated[
    str, typer.Option("--scenario", help="single (one call after the other), offline or server.")
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", help="Server: arrivals per second. Default: 70 % of what one worker can do.", show_default=False
    ),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", help="Server and offline: workers on one session, 1, 2, 4 … up to this.")
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        help="A further session: threads=1, provider=NAME, optimization=basic, execution=parallel, binding=yes (repeatable).",
        show_default=False,
    ),
]
Against = Annotated[
    str | None, typer.Option("--against", help="A second .onnx file to time beside it.", show_default=False)
]
Compile = Annotated[bool, typer.Option("--compile", help="Time torch.compile too.")]
Tune = Annotated[bool, typer.Option("--tune", help="Look for faster session settings that still pass verification.")]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="An earlier proof.json: slower than that is a finding.", show_default=False),
]
BenchFlag = Annotated[bool, typer.Option("--bench", help="Time both sides too.")]
MaxLatency = Annotated[
    list[str] | None,
    typer.Option("--max-latency", help="A limit, on its safe end: p99=20ms (repeatable).", show_default=False),
]
MinSpeedup = Annotated[
    float | None,
    typer.Option("--min-speedup", help="Least speed-up against PyTorch, on its safe end.", show_default=False),
]
MaxMemory = Annotated[
    str | None, typer.Option("--max-memory", help="Most memory of the session that ships: 2GB.", show_default=False)
]


def bench_of(options: dict[str, Any]) -> BenchSettings | None:
    """What is to be timed; None where no times are asked for."""
    from onnxproof.errors import UserError
    from onnxproof.proof.latency import SHOWN_PERCENTILES
    from onnxproof.request.benchmark import SCENARIOS, BenchSettings, parse_lengths, parse_variant
    from onnxproof.request.specs import parse_seconds

    get = options.get
    limits = limits_of(options)
    asked = get("bench") or get("verb") == "bench" or any(value is not None for value in limits.values())
    if not asked:
        return None
    scenario = get("scenario") or "single"
    if scenario not in SCENARIOS:
        raise UserError(f"--scenario {scenario!r}: expected one of {', '.join(SCENARIOS)}")
    for name in ("min_count", "concurrency", "threads"):
        value: int | None = get(name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} {value}: expected a number of 1 or more")
    rate: float | None = get("rate")
    if rate is not None and not rate > 0:
        raise UserError(f"--rate {rate}: expected a number of requests per second above 0")
    return BenchSettings(
        lengths=parse_lengths(get("lengths") or ()),
        min_time=parse_seconds(get("min_time") or "1s"),
        min_count=get("min_count") or 64,
        budget=parse_seconds(get("bench_budget") or "600s"),
        scenario=scenario,
        rate=rate,
        concurrency=get("concurrency") or 1,
        also=tuple(parse_variant(text) for text in get("also") or ()),
        against=get("against"),
        compile=bool(get("compile")),
        tune=bool(get("tune")),
        baseline=get("baseline"),
        percentiles=tuple(SHOWN_PERCENTILES[name] for name in limits["max_latency"] or {}),
    )


def limits_of(options: dict[str, Any]) -> dict[str, Any]:
    """Limits as they were given; None for those that were not."""
    from onnxproof.errors import UserError
    from onnxproof.policy.latency import parse_latency
    from onnxproof.request.specs import parse_bytes

    given, speedup, memory = options.get("max_latency"), options.get("min_speedup"), options.get("max_memory")
    if speedup is not None and not speedup > 0:
        raise UserError(f"--min-speedup {speedup}: expected a ratio above 0, such as 1.5")
    return {
        "max_latency": dict(parse_latency(text) for text in given) if given else None,
        "min_speedup": speedup,
        "max_memory": parse_bytes(memory) if memory else None,
    }


def with_limits(options: dict[str, Any], base: LatencyPolicy) -> LatencyPolicy:
    """A policy's limits with those that were given in their place."""
    from dataclasses import replace

    return replace(base, **{name: value for name, value in limits_of(options).items() if value is not None})
