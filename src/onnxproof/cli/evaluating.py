"""The command that runs a data set through both sides: evaluate."""

from __future__ import annotations

from typing import Annotated

import typer

from onnxproof.cli.app import app
from onnxproof.cli.options import (
    Accept,
    CaseTimeout,
    Dynamic,
    ExporterName,
    Github,
    Html,
    InProcess,
    Input,
    Json,
    Junit,
    Markdown,
    Onnx,
    Opset,
    Optimization,
    Out,
    Provider,
    Quiet,
    Range_,
    Reason,
    Target,
    Threads,
    Verbose,
)
from onnxproof.cli.work import given, work

EvaluatedData = Annotated[
    str,
    typer.Option(
        "--data",
        help="Examples with labels: npz, npy, csv, parquet, a saved Hugging Face data set, or file.py:name (a DataLoader, a data set, any iterable of batches).",
        show_default=False,
    ),
]
Evaluate = Annotated[
    bool, typer.Option("--evaluate/--no-evaluate", help="Measure task quality where --data has labels.")
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", help="The field (or file) with the labels. Default: labels, y, label, target.", show_default=False
    ),
]
Ids = Annotated[str | None, typer.Option("--ids", help="The field with the examples' ids.", show_default=False)]
TrainData = Annotated[
    str | None,
    typer.Option(
        "--train-data", help="What the model was trained on: looks for leakage, overfitting, shift.", show_default=False
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task", help="binary, multiclass, multilabel, regression or custom. Default: inferred.", show_default=False
    ),
]
Output = Annotated[str | None, typer.Option("--output", help="The output with the scores.", show_default=False)]
Classes = Annotated[
    str | None, typer.Option("--classes", help="Names in the order of the scores: ok,fraud.", show_default=False)
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", help="The class that counts as positive. Default: the second.", show_default=False),
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", help="Probability from which to decide. Default 0.5.", show_default=False)
]
Goals = Annotated[
    list[str] | None,
    typer.Option("--goal", help="Choose a threshold: 'recall>=0.95', max:f1 (repeatable).", show_default=False),
]
Cost = Annotated[
    str | None, typer.Option("--cost", help="Choose the cheapest threshold: fn=100,fp=1.", show_default=False)
]
Min = Annotated[
    list[str] | None,
    typer.Option("--min", help="Gate: recall=0.8, 'recall[fraud]=0.8' (repeatable).", show_default=False),
]
Max = Annotated[
    list[str] | None,
    typer.Option("--max", help="Gate for errors: mae=0.5, log_loss=0.3 (repeatable).", show_default=False),
]
MaxDrop = Annotated[
    list[str] | None,
    typer.Option("--max-drop", help="Largest loss against PyTorch: accuracy=0.01 (repeatable).", show_default=False),
]
Delta = Annotated[float, typer.Option("--delta", help="Accuracies within this are called the same.")]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="Your own: file.py:function(labels, scores) -> float (repeatable).", show_default=False
    ),
]
Preprocess = Annotated[
    str | None,
    typer.Option("--preprocess", help="What prepares raw records for training: file.py:name.", show_default=False),
]
ServePreprocess = Annotated[
    str | None,
    typer.Option(
        "--serve-preprocess", help="What prepares them in production: compared step by step.", show_default=False
    ),
]
WithPreprocess = Annotated[
    bool, typer.Option("--with-preprocess", help="Export --preprocess (a torch module) into the same file.")
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Rows at once.", show_default=False)]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Processes. Default: one, for large data one per core.", show_default=False),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on a Ray cluster; without an address on this machine.",
        show_default=False,
    ),
]
Resume = Annotated[bool, typer.Option("--resume/--no-resume", help="Go on where an earlier run ended.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")]


@app.command()
def evaluate(
    context: typer.Context,
    target: Target,
    data: EvaluatedData,
    onnx: Onnx = None,
    labels: Labels = None,
    ids: Ids = None,
    train_data: TrainData = None,
    task: Task = None,
    output: Output = None,
    classes: Classes = None,
    positive: Positive = None,
    threshold: Threshold = None,
    goal: Goals = None,
    cost: Cost = None,
    min: Min = None,
    max: Max = None,
    max_drop: MaxDrop = None,
    delta: Delta = 0.01,
    metric: Metric = None,
    preprocess: Preprocess = None,
    serve_preprocess: ServePreprocess = None,
    with_preprocess: WithPreprocess = False,
    batch_size: BatchSize = None,
    workers: Workers = None,
    ray: Ray = None,
    resume: Resume = True,
    input: Input = None,
    range: Range_ = None,
    dynamic: Dynamic = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    provider: Provider = None,
    optimization: Optimization = "all",
    threads: Threads = None,
    accept: Accept = None,
    reason: Reason = None,
    seed: SeedOption = 0,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    html: Html = None,
    junit: Junit = None,
    markdown: Markdown = None,
    github: Github = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    out: Out = "onnxproof-out",
) -> None:
    """Run a data set through both sides: metrics, changed decisions, thresholds, data traps."""
    options = {name: value for name, value in locals().items() if name != "context"}
    work({**options, "verb": "evaluate", "given": given(context)}, verify=False)


def with_address(arguments: list[str]) -> list[str]:
    """`--ray` without an address means this machine: typer knows no options whose value may be left out."""
    completed = []
    for i, argument in enumerate(arguments):
        completed.append(argument)
        following = arguments[i + 1] if i + 1 < len(arguments) else "-"
        if argument == "--ray" and (following.startswith("-") or ".py:" in following):
            completed.append("local")
    return completed
