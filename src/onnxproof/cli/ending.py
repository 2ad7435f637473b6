"""How a command ends: what is printed, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.request.request import Delivery, Request


def stop(message: str) -> NoReturn:
    """Say why, and exit with 2."""
    print(message, file=sys.stderr)
    sys.exit(2)


def stop_for_a_bug(message: str, trace: str, out: str = "onnxproof-out") -> NoReturn:
    """Say that it is our fault, and where the evidence lies."""
    import platform

    from onnxproof.pipeline.bug_report import write_bundle
    from onnxproof.version import __version__

    versions = {"onnxproof": __version__, "python": platform.python_version(), "platform": platform.platform()}
    folder = write_bundle(Path(out), message=message.splitlines()[0], trace=trace, environment=versions)
    stop(f"This is a bug in onnxproof: {message.splitlines()[0]}\nPlease report it with the files in {folder}.")


def tell(proof: Proof, delivery: Delivery) -> str:
    """Print the verdict while its cause is still looked for; what was printed."""
    from onnxproof.report.wording import headline

    if delivery.json == "-":
        return ""
    if delivery.json:
        proof.save(delivery.json)
    line = headline(proof)
    print(line, flush=True)
    return line


def deliver(
    proof: Proof, request: Request, require: Callable[[Proof], None] | None = None, said: Sequence[str] = ()
) -> NoReturn:
    """Print (but for a first line that was `said` already), write and exit."""
    from onnxproof.cli import outputs
    from onnxproof.report.text import culprits, describe_case, render

    _print(proof, render(proof), request.delivery, said)
    if request.delivery.json != "-":
        if request.verb == "locate" or (request.verb == "diff" and proof.blame):
            print(culprits(proof))
        if request.delivery.verbose:
            print("\n".join(line for case in proof.cases for line in describe_case(case)))
    outputs.write(proof, request)
    sys.stdout.flush()
    if require is not None:
        require(proof)
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


def finish(proof: Proof, text: str, delivery: Delivery) -> NoReturn:
    """Print a text or the proof, write the proof, and exit by the verdict."""
    _print(proof, text, delivery)
    sys.stdout.flush()
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


def _print(proof: Proof, text: str, delivery: Delivery, said: Sequence[str] = ()) -> None:
    if delivery.json == "-":
        print(proof.dumps())
        return
    if delivery.json:
        proof.save(delivery.json)
    first, *others = text.splitlines()
    lines = [line for line in (first,) if line not in said] + ([] if delivery.quiet else others)
    print("\n".join(lines), end="\n" if lines else "")
