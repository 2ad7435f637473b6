"""The command that times: bench."""

from __future__ import annotations

import typer

from onnxproof.cli.app import app
from onnxproof.cli.options import (
    Accept,
    Atol,
    CaseTimeout,
    Data,
    Dynamic,
    ExporterName,
    InProcess,
    Input,
    Json,
    KeepMetadata,
    MaxAbs,
    Noise,
    Onnx,
    Opset,
    Optimization,
    Out,
    Provider,
    Quiet,
    Range_,
    Reason,
    RoleOption,
    Rtol,
    Seed,
    Target,
)
from onnxproof.cli.timing import (
    Against,
    Also,
    Baseline,
    BenchBatches,
    BenchBudget,
    BenchThreads,
    Compile,
    Concurrency,
    Lengths,
    MaxLatency,
    MaxMemory,
    MinCount,
    MinSpeedup,
    MinTime,
    Rate,
    ScenarioOption,
    Tune,
)
from onnxproof.cli.work import given, work


@app.command()
def bench(
    context: typer.Context,
    target: Target,
    onnx: Onnx = None,
    input: Input = None,
    range: Range_ = None,
    role: RoleOption = None,
    dynamic: Dynamic = None,
    batch_sizes: BenchBatches = None,
    lengths: Lengths = None,
    data: Data = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    keep_metadata: KeepMetadata = False,
    provider: Provider = None,
    optimization: Optimization = "all",
    threads: BenchThreads = None,
    also: Also = None,
    against: Against = None,
    compile: Compile = False,
    scenario: ScenarioOption = "single",
    rate: Rate = None,
    concurrency: Concurrency = 1,
    min_time: MinTime = "1s",
    min_count: MinCount = 64,
    budget: BenchBudget = "600s",
    max_latency: MaxLatency = None,
    min_speedup: MinSpeedup = None,
    max_memory: MaxMemory = None,
    tune: Tune = False,
    baseline: Baseline = None,
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    seed: Seed = 0,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    quiet: Quiet = False,
    out: Out = "onnxproof-out",
) -> None:
    """Say whether ONNX Runtime is faster, by how much, how surely, and where it stops being so."""
    options = {name: value for name, value in locals().items() if name != "context"}
    work({**options, "verb": "bench", "bench_budget": options.pop("budget"), "given": given(context)}, verify=False)
