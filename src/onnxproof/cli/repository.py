"""A whole repository: every subject of the configuration proved, and a configuration to begin with."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from onnxproof.cli.commands import app
from onnxproof.errors import OnnxproofError, UserError, show_line
from onnxproof.files import write_file
from onnxproof.request.configuration import FILES, Settings
from onnxproof.request.option import list_options
from onnxproof.request.request import Reports
from onnxproof.system import SUPERVISES

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof

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


# A subject's name and the options of this call → its proof, which is in its folder then.
ProveSubject = Callable[[str, Mapping[str, Any]], "Proof"]


def prove_all(values: Mapping[str, Any], prove: ProveSubject) -> NoReturn:
    """Prove every subject, some at a time, in children of one process that has imported what they need; exit by the worst."""
    from onnxproof.pipeline.executors import fork_children

    out, jobs = str(values.get("out", "onnxproof-out")), values.get("jobs")
    subjects = list(Settings.find(Path.cwd()).subjects)
    if not subjects:
        raise UserError("--all: no configuration lists subjects here; `onnxproof init` writes a start")
    refused = [name for name in OWN if name in values]
    if refused:
        raise UserError(f"--{refused[0]} names one file: with --all each subject has its files in {out}/NAME")
    given = {name: value for name, value in values.items() if name not in ("all", "jobs", "out", "quiet")}
    at_once = (jobs or max(1, (os.cpu_count() or 2) // 2)) if SUPERVISES else 1
    with fork_children(out), ThreadPoolExecutor(at_once) as pool:
        outcomes = list(pool.map(lambda name: _prove(name, given, Path(out) / name, prove), subjects))
    print(render_table(outcomes, out), flush=True)
    raise typer.Exit(max(outcome.code for outcome in outcomes))


def _prove(name: str, given: Mapping[str, Any], out: Path, prove: ProveSubject) -> Outcome:
    from onnxproof.report.wording import tell_reason

    try:
        proof = prove(name, {**given, "out": str(out)})
        code = 0 if proof.verdict == "ship" else 1
        outcome = Outcome(name, code, proof.verdict, tell_reason(proof).removeprefix(": "))
    except OnnxproofError as error:  # a bug of ours too: it must not cost the other subjects
        outcome = Outcome(name, 2, "error", f"error: {str(error).strip() or 'it ended without a word'}")
    print(show_line(f"{name}: done"), file=sys.stderr)
    return outcome


def render_table(outcomes: list[Outcome], out: str) -> str:
    """One line for each subject, the worst first."""
    ranked = sorted(outcomes, key=lambda outcome: -list(WORDS).index(outcome.verdict))
    counts = Counter(outcome.verdict for outcome in outcomes)
    counted = ", ".join(f"{counts[verdict]} {word}" for verdict, word in WORDS.items() if counts[verdict])
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [f"{ranked[0].verdict.upper()}  {len(outcomes)} subjects: {counted}"]
    lines += [f"  {o.verdict.upper():<6}  {o.name:<{width}}  {' '.join(o.reason.split())[:140]}" for o in ranked]
    return "\n".join(map(show_line, [*lines, f"  the proofs and reports are in {out}/NAME"]))
