"""What a command leaves behind besides its text: HTML, JUnit, Markdown, GitHub's annotations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxproof.errors import UserError

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.request.request import Delivery, Request

BY_DEFAULT = ("prove", "demo")
"""Verbs that write the HTML report unasked, where it can be made."""


def check(delivery: Delivery) -> None:
    """Raise before the work where what was asked for cannot be written after it."""
    from onnxproof.report.extras import PAGE, require

    if delivery.html:
        require(*PAGE)
    for name in ("html", "junit", "markdown"):
        file = getattr(delivery, name)
        if file and Path(file).is_dir():
            raise UserError(f"--{name} {file} is a folder: expected the name of a file")
    if delivery.baseline:
        load_baseline(delivery)


def load_baseline(delivery: Delivery) -> Proof:
    """The proof that `--baseline` names."""
    from onnxproof.proof.proof import Proof

    return Proof.load(str(delivery.baseline))


def write(proof: Proof, request: Request) -> None:
    """Write what was asked for, and say where."""
    for name, file, render in _asked(proof, request):
        path = Path(file)
        try:
            _write(path, render())
        except Exception as error:
            if getattr(request.delivery, name):
                raise
            # A page that nobody asked for must not cost the verdict.
            print(
                f"the HTML report could not be made, please report it: {type(error).__name__}: {error}", file=sys.stderr
            )
            continue
        if not request.delivery.quiet:
            print(f"{name}: {path}", file=sys.stderr)
    if request.delivery.github:
        _annotate(proof, request.delivery)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None


def _asked(proof: Proof, request: Request) -> list[tuple[str, str, Any]]:
    """(What, where, how) of every file."""
    from onnxproof.report.html import render_html
    from onnxproof.report.junit import render_junit
    from onnxproof.report.markdown import render_markdown

    delivery = request.delivery
    renders = {"html": render_html, "junit": render_junit, "markdown": render_markdown}
    files = {"html": delivery.html or _default(request), "junit": delivery.junit, "markdown": delivery.markdown}
    return [(name, file, lambda name=name: renders[name](proof)) for name, file in files.items() if file]


def _default(request: Request) -> str | None:
    from onnxproof.report.extras import PAGE, missing

    if request.verb not in BY_DEFAULT or missing(*PAGE):
        return None
    return str(Path(request.out) / "report.html")


def _annotate(proof: Proof, delivery: Delivery) -> None:
    """Annotations go to stdout, where GitHub reads them; to stderr, which it reads too, where stdout is the proof."""
    from onnxproof.report.github import render_annotations, write_summary

    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    lines = render_annotations(proof, root)
    if lines:
        print(lines, file=sys.stderr if delivery.json == "-" else sys.stdout)
    write_summary(proof)
