"""What is printed, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import typer

import proofs
from onnxproof.cli import ending
from onnxproof.errors import UserError
from onnxproof.request.build import build_request
from onnxproof.request.request import Delivery


def ended(work) -> int:
    with pytest.raises((typer.Exit, SystemExit)) as end:
        work()
    return getattr(end.value, "exit_code", None) if isinstance(end.value, typer.Exit) else end.value.code


@pytest.mark.parametrize(("made", "code"), [({}, 0), ({"wrong": 2}, 1)])
def test_the_verdict_is_the_exit_code(made, code, capsys, tmp_path):
    request = build_request("report", {"quiet": True, "json": str(tmp_path / "p.json")})
    assert ended(lambda: ending.deliver(proofs.make_proof(**made), request)) == code
    told = capsys.readouterr().out
    assert told.startswith("SHIP" if code == 0 else "BLOCK")
    assert len(told.splitlines()) == 1
    assert json.loads((tmp_path / "p.json").read_text())["verdict"] == ("ship" if code == 0 else "block")


def test_the_proof_on_stdout_is_alone_there(capsys):
    assert (
        ended(
            lambda: ending.deliver(proofs.make_proof(wrong=2), build_request("locate", {"json": "-", "verbose": True}))
        )
        == 1
    )
    assert json.loads(capsys.readouterr().out)["verdict"] == "block"


def test_a_lint_prints_its_own_text(capsys):
    assert ended(lambda: ending.deliver(proofs.make_proof(), build_request("lint", {}), text="CLEAN  x")) == 0
    assert capsys.readouterr().out == "CLEAN  x\n"


def test_our_own_bug_leaves_its_evidence(capsys, tmp_path):
    assert ended(lambda: ending.stop_for_a_bug("KeyError: 'x'", "Traceback…", str(tmp_path))) == 2
    assert "bug in onnxproof" in capsys.readouterr().err
    assert (tmp_path / "bug-report" / "error.txt").read_text() == "Traceback…"


def test_files_that_cannot_be_written_are_told_before_the_work(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        ending.check(Delivery(junit=str(tmp_path)))
    with pytest.raises(UserError, match="there is no proof"):
        ending.check(Delivery(baseline=str(tmp_path / "none.json")))


def test_reports_are_written_where_they_were_asked_for(tmp_path, capsys):
    values = {"junit": str(tmp_path / "a" / "j.xml"), "markdown": str(tmp_path / "m.md")}
    ending.write(proofs.make_proof(wrong=2), build_request("report", values))
    assert (tmp_path / "a" / "j.xml").read_text().startswith("<?xml")
    assert "BLOCK" in (tmp_path / "m.md").read_text()
    assert "j.xml" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_costs_no_report(tmp_path):
    """`onnxproof … | head -1`: the pipe is closed before the summary is printed."""
    read, write = os.pipe()
    os.close(read)
    (tmp_path / "m.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(3, 2), (torch.randn(2, 3),)\n"
    )
    command = [sys.executable, "-m", "onnxproof", "lint", "m.py:make", "--json", "p.json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    os.close(write)
    assert (done.returncode, (tmp_path / "p.json").is_file()) == (0, True), done.stderr
