"""The commands that need no model of the user: report, explain, demo."""

from __future__ import annotations

from typing import Annotated

import typer

from onnxproof.cli.app import app
from onnxproof.cli.evaluating import Max, MaxDrop, Min
from onnxproof.cli.options import (
    Accept,
    Atol,
    Json,
    MaxAbs,
    Noise,
    Out,
    Quiet,
    Reason,
    Rtol,
    Verbose,
)
from onnxproof.cli.work import deliver, policy_of, work


@app.command()
def report(
    proof: Annotated[str, typer.Argument(help="A proof.json.", show_default=False)],
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    min: Min = None,
    max: Max = None,
    max_drop: MaxDrop = None,
    accept: Accept = None,
    reason: Reason = None,
    json: Json = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show a saved proof again, or judge it under another policy, without running anything."""
    from onnxproof.policy_quality import check_gates
    from onnxproof.proof import Proof

    loaded = Proof.load(proof)
    policy = policy_of(dict(locals()), loaded.policy)
    check_gates(policy.quality, loaded.quality)
    judged = loaded.judged(policy)
    deliver(judged, {"json": json, "quiet": quiet, "verbose": verbose})


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
def demo(json: Json = None, quiet: Quiet = False, verbose: Verbose = False, out: Out = "onnxproof-out") -> None:
    """Train a small CNN on scikit-learn's digits, prove its export and evaluate it on digits it has not seen."""
    from importlib.util import find_spec

    spec = find_spec("onnxproof.digits")
    assert spec is not None  # it lies beside this file
    options = {"json": json, "quiet": quiet, "verbose": verbose, "out": out, "verb": "demo"}
    data = {"data": f"{spec.origin}:unseen", "train_data": f"{spec.origin}:seen"}
    work({"target": "onnxproof.digits:digits", **options, **data})
