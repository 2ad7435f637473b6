"""What torch says while it works."""

from __future__ import annotations

import logging
import sys
import warnings
from contextlib import suppress

from onnxproof.artifact.exporter_output import catch_output


def test_prints_logs_and_warnings_come_in_one_text_and_nowhere_else(capsys):
    below = logging.getLogger("torch.some.part")
    below.handlers = [logging.StreamHandler(sys.stderr)]
    before = [(log.handlers, log.propagate) for log in (logging.getLogger("torch"), below)]
    with suppress(KeyError), catch_output() as text:
        print("printed")
        print("to stderr", file=sys.stderr)
        below.error("logged below")
        logging.getLogger("onnxscript").warning("logged")
        warnings.warn("deprecated", UserWarning, stacklevel=1)
        raise KeyError
    said = text.getvalue()
    assert all(line in said for line in ("printed", "to stderr", "logged below", "logged", "UserWarning: deprecated"))
    assert said.count("logged below") == 1
    assert capsys.readouterr() == ("", "")
    assert [(log.handlers, log.propagate) for log in (logging.getLogger("torch"), below)] == before
    below.handlers = []


def test_other_loggers_are_left_alone(caplog):
    with catch_output() as text:
        logging.getLogger("somebody").warning("else")
    assert text.getvalue() == ""
    assert "else" in caplog.text
