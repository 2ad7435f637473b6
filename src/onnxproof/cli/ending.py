"""How a command ends: what is printed, what is written besides, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NoReturn

import typer

from onnxproof.errors import NotWritten, UserError, show_line, show_text
from onnxproof.files import write_file
from onnxproof.request.option import list_options
from onnxproof.request.request import Reports

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.request.request import Delivery, Request

# Verbs that write the HTML report unasked, where it can be made.
BY_DEFAULT = ("prove", "demo", "quantize")


def stop(message: str) -> NoReturn:
    """Say why, and exit with 2."""
    print(show_text(message), file=sys.stderr)
    sys.exit(2)


def stop_for_a_bug(message: str, trace: str, out: str = "onnxproof-out") -> NoReturn:
    """Say that it is our fault, and where the evidence lies."""
    import platform

    from onnxproof.pipeline.bug_report import write_bundle
    from onnxproof.version import __version__

    versions = {"onnxproof": __version__, "python": platform.python_version(), "platform": platform.platform()}
    first = message.partition("\n")[0]
    try:
        folder = write_bundle(Path(out), message=first, trace=trace, environment=versions)
    except NotWritten as error:
        stop(f"This is a bug in onnxproof: {first}\nPlease report it with this ({error}):\n{trace}")
    stop(f"This is a bug in onnxproof: {first}\nPlease report it with the files in {folder}.")


def tell(proof: Proof, delivery: Delivery) -> str:
    """Print the verdict while its cause is still looked for; what was printed."""
    from onnxproof.report.wording import tell_headline

    if delivery.json == "-":
        return ""
    if delivery.json:
        with suppress(NotWritten):  # said in the end, where it is tried again
            proof.save(delivery.json)
    line = tell_headline(proof)
    with _outlive_reader():
        print(line, flush=True)
    return line


def deliver(
    proof: Proof,
    request: Request,
    require: Callable[[Proof], None] | None = None,
    said: Sequence[str] = (),
    text: str | None = None,
    unwritten: Sequence[str] = (),
) -> NoReturn:
    """Print the summary or another text (but for a first line that was `said` already), write and exit: with 2 where something is
    `unwritten`, for a verdict without its proof is not what was asked for."""
    from onnxproof.report.text import describe_case, list_culprits, render

    with _outlive_reader():
        _print(proof, render(proof) if text is None else text, request.delivery, said)
        if request.delivery.json != "-":
            if request.verb == "locate" or (request.verb == "diff" and proof.blame):
                print(list_culprits(proof))
            if request.delivery.verbose:
                print("\n".join(map(describe_case, proof.cases)))
        print(end="", flush=True)  # not sys.stdout.flush(): there is none where it was closed
    missing = dict.fromkeys([*unwritten, *write(proof, request)])
    if missing:
        stop("\n".join(f"error: {text}" for text in missing))
    if require is not None:
        require(proof)
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


@contextmanager
def _outlive_reader() -> Iterator[None]:
    """A reader that has seen enough (`| head`), or a module that closed stdout, costs neither the reports nor the exit code."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except ValueError:
        if not sys.stdout.closed:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # for as long as there is something to say


def _print(proof: Proof, text: str, delivery: Delivery, said: Sequence[str] = ()) -> None:
    if delivery.json == "-":
        print(proof.dumps())
        return
    first, *others = text.splitlines()
    lines = [line for line in (first,) if line not in said] + ([] if delivery.quiet else others)
    print("\n".join(lines), end="\n" if lines else "")


def check(delivery: Delivery) -> None:
    """Raise before the work where what was asked for cannot be written after it."""
    from onnxproof.report.extras import PAGE, require

    if delivery.html:
        require(*PAGE)
    for name in list_options(Reports):
        file = getattr(delivery, name)
        if file and Path(file).is_dir():
            raise UserError(f"--{name} {file} is a folder: expected the name of a file")
    if delivery.baseline:
        load_baseline(delivery)


def load_baseline(delivery: Delivery) -> Proof:
    """The proof that `--baseline` names."""
    from onnxproof.proof.proof import Proof

    return Proof.load(str(delivery.baseline))


def write(proof: Proof, request: Request) -> list[str]:
    """Write what was asked for, and say where; what cannot be written, in a sentence each."""
    missing = []
    if request.delivery.json not in (None, "-"):
        try:
            proof.save(str(request.delivery.json))
        except NotWritten as error:
            missing.append(str(error))
    files = {name: getattr(request.delivery, name) for name in list_options(Reports)}
    files["html"] = files["html"] or _choose_page(request)
    for name, path in ((name, Path(file)) for name, file in files.items() if file):
        try:
            write_file(path, resolve_name(f"onnxproof.report.{name}:render_{name}")(proof))
        except NotWritten as error:
            if getattr(request.delivery, name):
                missing.append(str(error))
            else:  # a page that nobody asked for must not cost the verdict
                print(show_text(str(error)), file=sys.stderr)
            continue
        except Exception as error:
            if getattr(request.delivery, name):
                raise
            told = f"the HTML report could not be made, please report it: {type(error).__name__}: {error}"
            print(show_text(told), file=sys.stderr)
            continue
        if not request.delivery.quiet:
            print(show_line(f"{name}: {path}"), file=sys.stderr)
    if request.delivery.github:
        _annotate(proof, request.delivery)
    return missing


def _choose_page(request: Request) -> str | None:
    from onnxproof.report.extras import PAGE, find_missing

    if request.verb not in BY_DEFAULT or find_missing(*PAGE):
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
