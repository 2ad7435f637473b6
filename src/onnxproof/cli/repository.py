"""A whole repository: every subject of the configuration proved, and a configuration to begin with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any, NoReturn

import typer

from onnxproof.cli.commands import app
from onnxproof.errors import UserError, show_line
from onnxproof.files import write_file
from onnxproof.request.configuration import FILES, Settings
from onnxproof.request.option import list_options
from onnxproof.request.request import Reports

# Options that name one file: with --all each subject has a folder of its own.
OWN = ("json", *list_options(Reports), "onnx", "baseline")

# What may become of a subject, from the best to the worst, and how it is counted.
WORDS = {"ship": "SHIP", "review": "REVIEW", "block": "BLOCK", "error": "failed"}


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
    import tomlkit

    found = Settings.find(Path.cwd())
    if found.file is not None and found.file.parent == Path.cwd():
        raise UserError(f"{found.file} has a configuration already")
    file, table, before = Path(FILES[0]), "", ""
    if Path("pyproject.toml").is_file():
        file, table = Path("pyproject.toml"), "tool.onnxproof"
        before = file.read_text(encoding="utf-8").rstrip() + "\n\n"
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in target.rpartition(":")[2] or "model")
    start = Template((files(__package__) / "start.toml.template").read_text(encoding="utf-8"))
    names = {"head": f"[{table}]" if table else "", "subjects": f"{table}.subjects".lstrip(".")}
    literal = tomlkit.item(target).as_string()
    write_file(file, before + start.substitute(names, name=name, target=literal))
    print(f"written to {file}; `onnxproof prove --all` proves what it lists")


def prove_all(arguments: list[str], values: Mapping[str, Any]) -> NoReturn:
    """Prove every subject, some at a time, each in a process of its own; exit by the worst."""
    out, jobs = str(values.get("out", "onnxproof-out")), values.get("jobs")
    subjects = list(Settings.find(Path.cwd()).subjects)
    if not subjects:
        raise UserError("--all: no configuration lists subjects here; `onnxproof init` writes a start")
    refused = [name for name in OWN if name in values]
    if refused:
        raise UserError(f"--{refused[0]} names one file: with --all each subject has its files in {out}/NAME")
    flags = _select_flags(arguments)
    at_once = jobs or max(1, (os.cpu_count() or 2) // 2)
    with ThreadPoolExecutor(at_once) as pool:
        outcomes = list(pool.map(lambda name: _prove(name, flags, Path(out) / name), subjects))
    print(render_table(outcomes, out), flush=True)
    raise typer.Exit(max(outcome.code for outcome in outcomes))


def _select_flags(arguments: list[str]) -> list[str]:
    """The flags of this call that go to every subject."""
    own = ("--out", "--jobs")
    dropped = ("--all", "--quiet", "-q", *own)
    return [
        argument
        for before, argument in zip(["", *arguments], arguments, strict=False)
        if before not in own and argument not in dropped and not argument.startswith(("--out=", "--jobs="))
    ]


def _prove(name: str, flags: list[str], out: Path) -> Outcome:
    from onnxproof.proof.proof import Proof
    from onnxproof.report.wording import tell_reason

    command = [sys.executable, "-m", "onnxproof", "prove", name, *flags, "--out", str(out), "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    print(show_line(f"{name}: done"), file=sys.stderr)
    if result.returncode not in (0, 1):
        lines = result.stderr.strip().splitlines() or ["it ended without a word"]
        return Outcome(name, 2, "error", lines[-1])
    proof: Proof = Proof.load(out / "proof.json")
    return Outcome(name, result.returncode, proof.verdict, tell_reason(proof).removeprefix(": "))


def render_table(outcomes: list[Outcome], out: str) -> str:
    """One line for each subject, the worst first."""
    ranked = sorted(outcomes, key=lambda outcome: -list(WORDS).index(outcome.verdict))
    counts = Counter(outcome.verdict for outcome in outcomes)
    counted = ", ".join(f"{counts[verdict]} {word}" for verdict, word in WORDS.items() if counts[verdict])
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [f"{ranked[0].verdict.upper()}  {len(outcomes)} subjects: {counted}"]
    lines += [f"  {o.verdict.upper():<6}  {o.name:<{width}}  {' '.join(o.reason.split())[:140]}" for o in ranked]
    return "\n".join(map(show_line, [*lines, f"  the proofs and reports are in {out}/NAME"]))
