"""What torch prints, logs and warns while it works, caught for the proof instead of the user's screen."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def caught() -> Iterator[io.StringIO]:
    """Redirect prints, log records of torch and onnxscript, and warnings into one text."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    loggers = [logging.getLogger(name) for name in ("torch", "onnxscript", "onnx_ir")]
    before = [(log, list(log.handlers), log.propagate) for log in loggers]
    with (
        contextlib.redirect_stdout(text),
        contextlib.redirect_stderr(text),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("default")
        for log in loggers:
            log.handlers, log.propagate = [handler], False
        try:
            yield text
        finally:
            for log, handlers, propagate in before:
                log.handlers, log.propagate = handlers, propagate
            for warning in seen:
                text.write(f"{warning.category.__name__}: {warning.message}\n")
