"""The command that looks without running: lint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnxproof.cli.app import app
from onnxproof.cli.options import Accept, Input, Json, Provider, Quiet, Reason
from onnxproof.cli.work import finish, job_of, policy_of

if TYPE_CHECKING:
    from onnxproof.policy.policy import Policy
    from onnxproof.proof.proof import Proof


@app.command()
def lint(
    target: Annotated[str, typer.Argument(help="A file.onnx, or a TARGET whose module is looked at before export.")],
    input: Input = None,
    provider: Provider = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            "--runtime",
            help="The onnxruntime that will serve it: 1.20. Default: the installed one.",
            show_default=False,
        ),
    ] = None,
    accept: Accept = None,
    reason: Reason = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Look at an ONNX file without building a session, or at a module before it is exported."""
    options = dict(locals())
    policy = policy_of(options, None)
    proof = _of_file(options, policy) if target.endswith(".onnx") else _of_module(options, policy)
    from onnxproof.report.lint import render_lint

    finish(proof, render_lint(proof), options)


def _of_file(options: dict[str, Any], policy: Policy) -> Proof:
    from onnxproof.api import lint

    return lint(options["target"], provider=options["provider"] or (), runtime=options["runtime"], policy=policy)


def _of_module(options: dict[str, Any], policy: Policy) -> Proof:
    from onnxproof.cli.progress import shown
    from onnxproof.pipeline.conduct import conduct_lint

    if options["runtime"] is not None:
        from onnxproof.errors import UserError

        raise UserError("--runtime is about an ONNX file: give one instead of a module")
    with shown(bool(options["quiet"])) as progress:
        return conduct_lint(job_of(options, policy), policy, isolate=True, progress=progress)
