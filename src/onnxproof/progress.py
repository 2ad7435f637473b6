"""Progress on stderr: a moving line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from onnxproof.conductor import Progress

STAGES = {
    "import": "loading",
    "examine": "examining the module",
    "export": "exporting",
    "session": "building the session",
    "locate": "looking for the cause",
}


@contextmanager
def shown(quiet: bool) -> Iterator[Progress]:
    """Progress as a spinner with the stage, then the case."""
    if quiet or not sys.stderr.isatty():
        yield Progress()
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield Progress(
            stage=lambda stage: status.update(STAGES.get(stage, stage)),
            case=lambda done, total, name: status.update(f"case {done + 1} of {total}: {name}"),
        )
