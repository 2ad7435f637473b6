"""What torch prints, logs and warns while it works, caught for the proof instead of the user's screen."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

PACKAGES = ("torch", "onnxscript", "onnx_ir")


@contextlib.contextmanager
def catch_output() -> Iterator[io.StringIO]:
    """Redirect prints, log records of torch and onnxscript, and warnings into one text."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    loggers = _list_loggers()
    before = [(log, list(log.handlers), log.propagate) for log in loggers]
    with (
        contextlib.redirect_stdout(text),
        contextlib.redirect_stderr(text),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("default")
        for log in loggers:
            # torch's handlers hold the stderr of the time they were made: redirecting it does not reach them.
            log.handlers, log.propagate = [handler], False
        try:
            yield text
        finally:
            for log, handlers, propagate in before:
                log.handlers, log.propagate = handlers, propagate
            for warning in seen:
                text.write(f"{warning.category.__name__}: {warning.message}\n")


def _list_loggers() -> list[logging.Logger]:
    """The packages' loggers, and those below them that have handlers of their own."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in PACKAGES]
    below = [log for name in names if (log := logging.getLogger(name)).handlers]
    return list(dict.fromkeys([*map(logging.getLogger, PACKAGES), *below]))
