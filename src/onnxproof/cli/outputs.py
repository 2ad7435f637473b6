"""What a command leaves behind besides its text: HTML, JUnit, Markdown, GitHub's annotations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof

FLAGS = ("html", "junit", "markdown", "github")
BY_DEFAULT = ("prove", "demo")
"""Verbs that write the HTML report unasked, where it can be made."""


def check(options: dict[str, Any]) -> None:
    """Raise before the work where what was asked for cannot be written after it."""
    from onnxproof.errors import UserError
    from onnxproof.report.extras import PAGE, require

    if options.get("html"):
        require(*PAGE)
    for name in ("html", "junit", "markdown"):
        if options.get(name) and Path(options[name]).is_dir():
            raise UserError(f"--{name} {options[name]} is a folder: expected the name of a file")
    if options.get("baseline"):
        load_baseline(options)


def load_baseline(options: dict[str, Any]) -> Proof:
    """The proof that `--baseline` names."""
    from onnxproof.proof.proof import Proof

    return Proof.load(str(options["baseline"]))


def write(proof: Proof, options: dict[str, Any]) -> None:
    """Write what was asked for, and say where."""
    for name, file, render in _asked(proof, options):
        path = Path(file)
        try:
            _write(path, render())
        except Exception as error:
            if options.get(name):
                raise
            # A page that nobody asked for must not cost the verdict.
            print(
                f"the HTML report could not be made, please report it: {type(error).__name__}: {error}", file=sys.stderr
            )
            continue
        if not options.get("quiet"):
            print(f"{name}: {path}", file=sys.stderr)
    if options.get("github"):
        _annotate(proof, options)


def _write(path: Path, text: str) -> None:
    from onnxproof.errors import UserError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def _asked(proof: Proof, options: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """(What, where, how) of every file."""
    from onnxproof.report.html import render_html
    from onnxproof.report.junit import render_junit
    from onnxproof.report.markdown import render_markdown

    renders = {"html": render_html, "junit": render_junit, "markdown": render_markdown}
    files = {name: options.get(name) for name in renders} | {"html": options.get("html") or _default(options)}
    return [(name, str(file), lambda name=name: renders[name](proof)) for name, file in files.items() if file]


def _default(options: dict[str, Any]) -> str | None:
    from onnxproof.report.extras import PAGE, missing

    if options.get("verb") not in BY_DEFAULT or missing(*PAGE):
        return None
    return str(Path(options.get("out") or "onnxproof-out") / "report.html")


def _annotate(proof: Proof, options: dict[str, Any]) -> None:
    """Annotations go to stdout, where GitHub reads them; to stderr, which it reads too, where stdout is the proof."""
    from onnxproof.report.github import render_annotations, write_summary

    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    lines = render_annotations(proof, root)
    if lines:
        print(lines, file=sys.stderr if options.get("json") == "-" else sys.stdout)
    write_summary(proof)
