"""The command line: the only place that prints and exits."""

from __future__ import annotations

import sys
import traceback

from onnxproof.cli import (  # noqa: F401  # they add their commands to the application
    benching,
    evaluating,
    linting,
    proving,
    reading,
)
from onnxproof.cli.app import app
from onnxproof.cli.evaluating import with_address
from onnxproof.cli.work import stop, stop_for_a_bug

__all__ = ["app", "main"]


def main() -> None:
    """Run, and turn errors into messages and exit codes: 1 for REVIEW and BLOCK, 2 for wrong usage and our own bugs."""
    from onnxproof.errors import UserError

    try:
        app(with_address(sys.argv[1:]))
    except UserError as error:
        stop(f"error: {error}")
    except KeyboardInterrupt:
        stop("interrupted")
    except Exception as error:
        stop_for_a_bug(f"{type(error).__name__}: {error}", traceback.format_exc())
