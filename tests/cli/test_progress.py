"""Progress: words for what is done; nothing where nobody looks."""

from __future__ import annotations

import io
import time

from onnxproof.cli.progress import _tell_rows, _tell_search, show_progress
from onnxproof.pipeline.events import Evaluated
from onnxproof.proof.search import Search


def test_nothing_is_shown_off_a_terminal(capsys):
    told = []
    with show_progress(quiet=False, verdict=told.append) as progress:
        progress.stage("export")
        progress.case(1, 2, "a")
        progress.verdict("proof")
    assert capsys.readouterr() == ("", "")
    assert told == ["proof"]


def test_rows_and_inputs_are_counted():
    assert _tell_rows(Evaluated(1000, 2000, 500.0, 2.0)) == "evaluating: 1,000 of 2,000 rows, 500 rows/s, 2 s left"
    assert _tell_rows(Evaluated(1000, None, 500.0, None)) == "evaluating: 1,000 rows, 500 rows/s"
    assert _tell_search(Search(budget=30.0, seconds=3.0, inputs=7, reached=1, regimes=4, worst=0.5)).startswith(
        "searching: 3 of 30 s, 7 inputs, 1 of 4 regimes"
    )


def test_a_case_named_like_markup_is_shown_as_it_is(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", shown)
    with show_progress(quiet=False, verdict=print) as progress:
        progress.case(0, 1, "[/bold]\x1b[2J")
        time.sleep(0.3)
    assert "[/bold]\\x1b[2J" in shown.getvalue()
