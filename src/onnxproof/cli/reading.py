"""The commands that run nothing: report, explain."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnxproof.cli.commands import add_command, app
from onnxproof.cli.ending import deliver, load_baseline
from onnxproof.errors import UserError
from onnxproof.request.build import build_request
from onnxproof.request.verbs import VERBS, Verb

if TYPE_CHECKING:
    from onnxproof.findings import Entry


def report(verb: Verb, arguments: Mapping[str, str | None], values: Mapping[str, Any]) -> None:
    """A saved proof again, under its own policy with what is given in its place."""
    from onnxproof.policy.asked import make_policy
    from onnxproof.policy.judgement import judge_against, judge_proof
    from onnxproof.policy.quality import check_gates
    from onnxproof.proof.proof import Proof

    request = build_request("report", values)
    proof = Proof.load(str(arguments["proof"]))
    policy = make_policy(request.judgement, proof.policy)
    check_gates(policy.quality, proof.quality)
    judged = judge_proof(proof, policy)
    if request.delivery.baseline:
        judged = judge_against(judged, load_baseline(request.delivery))
    deliver(judged, request)


add_command(VERBS["report"], report)


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
    from onnxproof.findings import CATALOGUE

    if all:
        print("\n".join(f"{entry.code}  {entry.severity:<6}  {entry.title}" for entry in CATALOGUE.values()))
        return
    if error is not None:
        _explain_error(error)
        return
    if code is None or code.upper() not in CATALOGUE:
        raise UserError(f"there is no code {code!r}; `onnxproof explain --all` lists them")
    print(_render_page(CATALOGUE[code.upper()]))


def _render_page(entry: Entry) -> str:
    from onnxproof.findings.pages import list_facts

    parts = [f"{label}: {text}" if label else text for label, text in list_facts(entry).items()]
    return "\n\n".join([f"{entry.code}: {entry.title} ({entry.severity})", *parts])


def _explain_error(source: str) -> None:
    from onnxproof.diagnosis.failures import diagnose_text

    if source != "-" and not Path(source).is_file():
        raise UserError(f"--error: there is no file {source}")
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8", errors="replace")
    finding = diagnose_text(text)
    if finding is None:
        print("This message is not in the catalogue.", file=sys.stderr)
        raise typer.Exit(1)
    print(
        f"{finding.code}: {finding.message}\n\nWhat to do: {finding.help}\n\n`onnxproof explain {finding.code}` tells more."
    )
