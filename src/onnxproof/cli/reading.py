"""The commands that need no model of the user: report, explain, demo."""

from __future__ import annotations

from typing import Annotated

import typer

from onnxproof.cli.app import app
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
from onnxproof.cli.work import deliver, policy_of, work


@app.command()
def report(
    proof: Annotated[str, typer.Argument(help="A proof.json.", show_default=False)],
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
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
    from onnxproof.proof import Proof

    options = dict(locals())
    loaded = Proof.load(proof)
    judged = loaded.judged(policy_of(options, loaded.policy))
    deliver(judged.against(load_baseline(options)) if baseline else judged, options)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="A finding's code, such as OX201.", show_default=False)] = None,
    all: Annotated[bool, typer.Option("--all", help="Every code.")] = False,
) -> None:
    """Say what a finding means, why it matters and how to fix it."""
    from onnxproof.errors import UserError
    from onnxproof.findings import CATALOGUE

    if all:
        print("\n".join(f"{entry.code}  {entry.severity:<6}  {entry.title}" for entry in CATALOGUE.values()))
        return
    if code is None or code.upper() not in CATALOGUE:
        raise UserError(f"there is no code {code!r}; `onnxproof explain --all` lists them")
    entry = CATALOGUE[code.upper()]
    print(
        f"{entry.code}: {entry.title} ({entry.severity})\n\n{entry.what}\n\nWhy it matters: {entry.why}\n\nWhat to do: {entry.fix}"
    )


@app.command()
def demo(
    json: Json = None, html: Html = None, quiet: Quiet = False, verbose: Verbose = False, out: Out = "onnxproof-out"
) -> None:
    """Train a small CNN on scikit-learn's digits and prove its export."""
    work({**locals(), "target": "onnxproof.digits:digits", "verb": "demo"})
