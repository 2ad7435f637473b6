"""The commands that need no model of the user: report, explain, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxproof.cli.app import app
from onnxproof.cli.evaluating import Max, MaxDrop, Min
from onnxproof.cli.options import (
    Accept,
    Atol,
    Baseline,
    Github,
    Html,
    Json,
    Junit,
    Markdown,
    MaxAbs,
    Noise,
    Out,
    Quiet,
    Reason,
    Rtol,
    Verbose,
)
from onnxproof.cli.outputs import load_baseline
from onnxproof.cli.timing import MaxLatency, MaxMemory, MinSpeedup
from onnxproof.cli.work import deliver, policy_of, work

if TYPE_CHECKING:
    from onnxproof.findings import Entry


@app.command()
def report(
    proof: Annotated[str, typer.Argument(help="A proof.json.", show_default=False)],
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    max_latency: MaxLatency = None,
    min_speedup: MinSpeedup = None,
    max_memory: MaxMemory = None,
    min: Min = None,
    max: Max = None,
    max_drop: MaxDrop = None,
    accept: Accept = None,
    reason: Reason = None,
    json: Json = None,
    html: Html = None,
    junit: Junit = None,
    markdown: Markdown = None,
    github: Github = False,
    baseline: Baseline = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show a saved proof again, or judge it under another policy, without running anything."""
    from onnxproof.policy.quality import check_gates
    from onnxproof.proof.proof import Proof

    options = dict(locals())
    loaded = Proof.load(proof)
    policy = policy_of(options, loaded.policy)
    check_gates(policy.quality, loaded.quality)
    judged = loaded.judged(policy)
    deliver(judged.against(load_baseline(options)) if baseline else judged, options)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="A finding's code, such as OX201.", show_default=False)] = None,
    all: Annotated[bool, typer.Option("--all", help="Every code.")] = False,
    error: Annotated[
        str | None,
        typer.Option(
            "--error", help="A file with an error message of torch or onnxruntime; - for stdin.", show_default=False
        ),
    ] = None,
) -> None:
    """Say what a finding means, why it matters and how to fix it; or what an error message means."""
    from onnxproof.errors import UserError
    from onnxproof.findings import CATALOGUE

    if all:
        print("\n".join(f"{entry.code}  {entry.severity:<6}  {entry.title}" for entry in CATALOGUE.values()))
        return
    if error is not None:
        _explain_error(error)
        return
    if code is None or code.upper() not in CATALOGUE:
        raise UserError(f"there is no code {code!r}; `onnxproof explain --all` lists them")
    print(_page(CATALOGUE[code.upper()]))


def _page(entry: Entry) -> str:
    parts = [f"{entry.code}: {entry.title} ({entry.severity})", entry.what, f"Why it matters: {entry.why}"]
    parts += [f"What to do: {entry.fix}"]
    parts += [f"For example: {entry.example}"] * bool(entry.example)
    parts += [f"Looks alike and is right: {entry.near_miss}"] * bool(entry.near_miss)
    return "\n\n".join(parts)


def _explain_error(source: str) -> None:
    from onnxproof.diagnosis import recognise
    from onnxproof.errors import UserError

    if source != "-" and not Path(source).is_file():
        raise UserError(f"--error: there is no file {source}")
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8", errors="replace")
    finding = recognise(text)
    if finding is None:
        print("This message is not in the catalogue.", file=sys.stderr)
        raise typer.Exit(1)
    print(
        f"{finding.code}: {finding.message}\n\nWhat to do: {finding.help}\n\n`onnxproof explain {finding.code}` tells more."
    )


@app.command()
def demo(
    json: Json = None, html: Html = None, quiet: Quiet = False, verbose: Verbose = False, out: Out = "onnxproof-out"
) -> None:
    """Train a small CNN on scikit-learn's digits, prove its export and evaluate it on digits it has not seen."""
    options = dict(locals())
    from importlib.util import find_spec

    spec = find_spec("onnxproof.cli.digits")
    assert spec is not None  # it lies beside this file
    data = {"data": f"{spec.origin}:unseen", "train_data": f"{spec.origin}:seen"}
    work({**options, **data, "target": "onnxproof.cli.digits:digits", "verb": "demo"})
