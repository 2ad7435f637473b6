"""A whole repository: every subject of the configuration proved, and a configuration to begin with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from onnxproof.cli.app import app

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof

OWN = ("--json", "--html", "--junit", "--markdown", "--onnx", "--baseline")
"""Options that name one file: with --all each subject has a folder of its own."""

START = """\
# What onnxproof proves, and how. Keys are the flags of `onnxproof prove`; flags on the command line go first.
{prefix}
# atol = 1e-4            # what is promised downstream; without these rounding decides
# rtol = 1e-3
# budget = "120s"        # time for the cases of one subject
# search = "30s"         # look for an input that breaks it
# provider = ["CPU"]     # the session that ships
# accept = {{ OX204 = "ill-conditioned by design" }}

[{subjects}.{name}]
target = "{target}"
# dynamic = ["x:0=batch"]      # which dimensions vary; the batch by default
# range = ["ids:0,30521"]      # valid values of an input
# data = "tests/data.npz"      # your own examples; with labels the task's quality is judged too
# min = ["recall=0.8"]
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one subject."""

    name: str
    code: int
    verdict: str
    reason: str


@app.command()
def init(
    target: Annotated[str, typer.Argument(help="The first subject.", show_default=False)] = "model.py:make",
) -> None:
    """Write a commented configuration to begin with: into pyproject.toml where there is one, else into onnxproof.toml."""
    from onnxproof.errors import UserError
    from onnxproof.request.configuration import FILES, Settings

    found = Settings.find(Path.cwd())
    if found.file is not None and found.file.parent == Path.cwd():
        raise UserError(f"{found.file} has a configuration already")
    project = Path("pyproject.toml")
    name = "".join(c if c.isalnum() else "-" for c in target.rpartition(":")[2] or "model")
    if project.is_file():
        text = START.format(prefix="[tool.onnxproof]", subjects="tool.onnxproof.subjects", name=name, target=target)
        project.write_text(project.read_text(encoding="utf-8").rstrip() + "\n\n" + text, encoding="utf-8")
        print(f"written to {project}; `onnxproof prove --all` proves what it lists")
        return
    Path(FILES[0]).write_text(START.format(prefix="", subjects="subjects", name=name, target=target), encoding="utf-8")
    print(f"written to {FILES[0]}; `onnxproof prove --all` proves what it lists")


def prove_all(arguments: list[str], values: Mapping[str, Any]) -> NoReturn:
    """Prove every subject, some at a time, each in a process of its own; exit by the worst."""
    from onnxproof.errors import UserError
    from onnxproof.request.configuration import Settings

    out, jobs = str(values.get("out", "onnxproof-out")), values.get("jobs")
    subjects = list(Settings.find(Path.cwd()).subjects)
    if not subjects:
        raise UserError("--all: no configuration lists subjects here; `onnxproof init` writes a start")
    refused = [flag for flag in OWN if flag.removeprefix("--") in values]
    if refused:
        raise UserError(f"{refused[0]} names one file: with --all each subject has its files in {out}/NAME")
    flags = _passed_on(arguments)
    at_once = jobs or max(1, (os.cpu_count() or 2) // 2)
    with ThreadPoolExecutor(at_once) as pool:
        outcomes = list(pool.map(lambda name: _prove(name, flags, Path(out) / name), subjects))
    print(table(outcomes, out))
    sys.stdout.flush()
    raise typer.Exit(max(outcome.code for outcome in outcomes))


def _passed_on(arguments: list[str]) -> list[str]:
    """The flags of this call that go to every subject."""
    passed: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in ("--out", "--jobs"):
            skip = True
        elif argument not in ("--all", "--quiet", "-q") and not argument.startswith(("--out=", "--jobs=")):
            passed.append(argument)
    return passed


def _prove(name: str, flags: list[str], out: Path) -> Outcome:
    command = [sys.executable, "-m", "onnxproof", "prove", name, *flags, "--out", str(out), "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"{name}: done", file=sys.stderr)
    if result.returncode not in (0, 1):
        lines = result.stderr.strip().splitlines() or ["it ended without a word"]
        return Outcome(name, 2, "error", lines[-1])
    return Outcome(name, result.returncode, *_told(out / "proof.json"))


def _told(file: Path) -> tuple[str, str]:
    from onnxproof.proof.proof import Proof
    from onnxproof.report.wording import reason

    proof: Proof = Proof.load(file)
    return proof.verdict, reason(proof).removeprefix(": ")


def table(outcomes: list[Outcome], out: str) -> str:
    """One line for each subject, the worst first."""
    order = {"error": 0, "block": 1, "review": 2, "ship": 3}
    ranked = sorted(outcomes, key=lambda outcome: order[outcome.verdict])
    counts = [
        f"{sum(1 for o in outcomes if o.verdict == verdict)} {word}"
        for verdict, word in (("ship", "SHIP"), ("review", "REVIEW"), ("block", "BLOCK"), ("error", "failed"))
        if any(o.verdict == verdict for o in outcomes)
    ]
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [f"{ranked[0].verdict.upper()}  {len(outcomes)} subjects: {', '.join(counts)}"]
    lines += [f"  {o.verdict.upper():<6}  {o.name:<{width}}  {' '.join(o.reason.split())[:140]}" for o in ranked]
    return "\n".join([*lines, f"  the proofs and reports are in {out}/NAME"])
