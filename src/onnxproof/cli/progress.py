"""Progress on stderr: a moving line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnxproof.errors import show_line
from onnxproof.pipeline.collected import Progress
from onnxproof.pipeline.events import Evaluated
from onnxproof.proof.proof import Proof
from onnxproof.proof.search import Search

STAGES = {
    "import": "loading",
    "examine": "examining the module",
    "export": "exporting",
    "session": "building the session",
    "screen": "looking at more sizes and ids",
    "trial": "trying every operator by itself",
    "search": "searching",
    "locate": "looking for the cause",
    "evaluate": "evaluating",
    "measure": "measuring",
    "shrink": "making the failing input small",
}


@contextmanager
def show_progress(quiet: bool, verdict: Callable[[Proof], None]) -> Iterator[Progress]:
    """Progress as a spinner with the stage, then the case; `verdict` hears of the verdict while the line stands still."""
    if quiet or not sys.stderr.isatty():
        yield Progress(verdict=verdict, warning=_warn)
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("starting") as status:
        usually = ""

        def pause(proof: Proof) -> None:
            nonlocal usually
            # Looking for the cause takes a second export and some forwards: seldom more than everything before it.
            usually = f", usually within {max(proof.timing.seconds or 0, 1):.0f} s"
            status.stop()
            verdict(proof)
            status.start()

        yield Progress(
            verdict=pause,
            warning=_warn,
            stage=lambda stage: status.update(STAGES.get(stage, stage) + usually),
            case=lambda done, total, name: status.update(f"case {done + 1} of {total}: {escape(show_line(name))}"),
            search=lambda outcome: status.update(_tell_search(outcome)),
            rows=lambda done: status.update(_tell_rows(done)),
        )


def _warn(text: str) -> None:
    print(show_line(f"warning: {text}"), file=sys.stderr)


def _tell_search(so_far: Search) -> str:
    return (
        f"searching: {so_far.seconds:.0f} of {so_far.budget:.0f} s, {so_far.inputs} inputs, {so_far.reached} of "
        f"{so_far.regimes} regimes, worst {so_far.worst:.2g} of what rounding explains"
    )


def _tell_rows(rows: Evaluated) -> str:
    of = f" of {rows.total:,}" if rows.total else ""
    left = f", {rows.left:.0f} s left" if rows.left is not None else ""
    return f"evaluating: {rows.done:,}{of} rows, {rows.rate:,.0f} rows/s{left}"
