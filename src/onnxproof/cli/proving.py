"""The commands that run a model: prove, verify, locate, diff, export."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from onnxproof.cli.app import app
from onnxproof.cli.evaluating import Evaluate, Labels, Max, MaxDrop, Min
from onnxproof.cli.options import (
    Accept,
    All,
    Atol,
    Baseline,
    Batches,
    Budget,
    CaseTimeout,
    Data,
    Disable,
    Dynamic,
    ExporterName,
    Fix,
    Github,
    Heal,
    Html,
    InProcess,
    Input,
    Jobs,
    Json,
    Junit,
    KeepMetadata,
    Markdown,
    MaxAbs,
    Memory,
    Noise,
    Nonfinite,
    NoOptimize,
    Onnx,
    Opset,
    Optimization,
    OptionalTarget,
    Out,
    Provider,
    Quiet,
    Range_,
    Reason,
    RoleOption,
    Rtol,
    Search,
    Seed,
    Strict,
    Target,
    Threads,
    Verbose,
)
from onnxproof.cli.repository import prove_all
from onnxproof.cli.timing import BenchFlag, MaxLatency, MaxMemory, MinSpeedup
from onnxproof.cli.work import given, work


@app.command("prove", help="Export, verify and judge: the whole proof.")
@app.command("verify", help="Verify parity only, of a file (--onnx) or of a fresh export.")
@app.command("locate", help="Verify, and show the step, the nodes, the modules and the lines to blame.")
def prove(
    context: typer.Context,
    target: OptionalTarget = None,
    all: All = False,
    jobs: Jobs = None,
    onnx: Onnx = None,
    input: Input = None,
    range: Range_ = None,
    role: RoleOption = None,
    dynamic: Dynamic = None,
    batch_sizes: Batches = None,
    data: Data = None,
    evaluate: Evaluate = True,
    labels: Labels = None,
    min: Min = None,
    max: Max = None,
    max_drop: MaxDrop = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    keep_metadata: KeepMetadata = False,
    no_optimize: NoOptimize = False,
    strict: Strict = False,
    provider: Provider = None,
    optimization: Optimization = "all",
    disable: Disable = None,
    threads: Threads = None,
    heal: Heal = False,
    fix: Fix = False,
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    nonfinite: Nonfinite = False,
    seed: Seed = 0,
    budget: Budget = "120s",
    search: Search = None,
    memory: Memory = None,
    bench: BenchFlag = False,
    max_latency: MaxLatency = None,
    min_speedup: MinSpeedup = None,
    max_memory: MaxMemory = None,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    html: Html = None,
    junit: Junit = None,
    markdown: Markdown = None,
    github: Github = False,
    baseline: Baseline = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    out: Out = "onnxproof-out",
) -> None:
    """The verbs that run both sides share their options."""
    options = {name: value for name, value in locals().items() if name not in ("context", "all", "jobs")}
    if all and target is None and context.info_name == "prove":
        prove_all(sys.argv[2:], given(context), out, jobs)
    require_target(target, every=all)
    work({**options, "verb": context.info_name, "given": given(context)})


@app.command()
def diff(
    first: Annotated[str, typer.Argument(help="The file that is right: before an optimiser, a quantiser, …")],
    second: Annotated[str, typer.Argument(help="The file that is to replace it.")],
    range: Range_ = None,
    role: RoleOption = None,
    batch_sizes: Batches = None,
    data: Data = None,
    provider: Provider = None,
    optimization: Optimization = "all",
    disable: Disable = None,
    threads: Threads = None,
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    nonfinite: Nonfinite = False,
    seed: Seed = 0,
    budget: Budget = "120s",
    search: Search = None,
    memory: Memory = None,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    html: Html = None,
    junit: Junit = None,
    markdown: Markdown = None,
    github: Github = False,
    baseline: Baseline = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    out: Out = "onnxproof-out",
) -> None:
    """Compare two ONNX files: before and after an optimiser, a quantiser, a simplifier, another opset."""
    options = {name: value for name, value in locals().items() if name not in ("first", "second")}
    require_onnx(first, second)
    work({**options, "target": first, "onnx": second, "verb": "diff"})


@app.command()
def export(
    context: typer.Context,
    target: Target,
    input: Input = None,
    range: Range_ = None,
    dynamic: Dynamic = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    keep_metadata: KeepMetadata = False,
    no_optimize: NoOptimize = False,
    strict: Strict = False,
    fix: Fix = False,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    quiet: Quiet = False,
    out: Out = "onnxproof-out",
) -> None:
    """Export only: eval mode, dynamic batch, readable names, a stripped file and its source map."""
    options = {name: value for name, value in locals().items() if name != "context"}
    work({**options, "given": given(context)}, verify=False)


def require_target(target: str | None, *, every: bool) -> None:
    """Raise where there is not exactly one thing to prove."""
    from onnxproof.errors import UserError

    if every:
        raise UserError("--all proves every subject of the configuration: give it to `prove`, without a TARGET")
    if target is None:
        raise UserError("expected a TARGET such as model.py:make, or `prove --all` with a configuration")


def require_onnx(*files: str) -> None:
    """Raise where a file is no ONNX file by its name."""
    from onnxproof.errors import UserError

    for file in files:
        if not file.endswith(".onnx"):
            raise UserError(f"diff compares two .onnx files, got {file}")
