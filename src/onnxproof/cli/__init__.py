"""The command line: the only place that prints and exits."""

from __future__ import annotations

import io
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType

from onnxproof.cli import proving, reading, repository  # noqa: F401  # they add their commands to the application
from onnxproof.cli.commands import app
from onnxproof.cli.ending import stop, stop_for_a_bug
from onnxproof.cli.proving import add_address
from onnxproof.cli.watching import leave_with_the_watcher, tell_end

__all__ = ["app", "main"]


def main() -> None:
    """Run, and tell whoever watches how it ended."""
    leave_with_the_watcher()
    _escape_what_cannot_be_shown()
    try:
        _run()
    except SystemExit as end:
        tell_end(end.code)
        raise


def _escape_what_cannot_be_shown() -> None:
    """A terminal or a log that has no − and no × gets them escaped: a verdict must not fail for its signs."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # and not what a test puts there
            stream.reconfigure(errors="backslashreplace")


def _run() -> None:
    """Do what is asked, and turn errors into messages and exit codes: 1 for REVIEW and BLOCK, 2 for wrong usage and our own bugs."""
    from onnxproof.errors import UserError

    interrupted: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        signal.default_int_handler(number, frame)

    with suppress(ValueError):  # not in the main thread, where nobody is asked
        # As an exit and not at once: children and temporary files go with it.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        signal.signal(signal.SIGINT, interrupt)
    try:
        app(add_address(sys.argv[1:]))
    except UserError as error:
        stop(f"error: {error}")
    except OSError as error:  # a full disk, a folder that may not be written, a closed pipe
        stop(f"error: the system refuses: {error}")
    except KeyboardInterrupt:
        stop("interrupted")
    except Exception as error:
        if interrupted:  # native modules that are being imported make an ImportError of it
            stop("interrupted")
        stop_for_a_bug(f"{type(error).__name__}: {error}", traceback.format_exc())
