"""A run that was ended goes on: its proof is that of a run that was not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from benchmarks.reliability.kills import list_leavings, normalise
from benchmarks.reliability.subjects import write_subjects

import onnxproof
from onnxproof import system
from onnxproof.files import JOURNAL
from test_supervision import wait_for

# Who is left behind is looked for among the command's own processes.
pytestmark = pytest.mark.cold
FLAGS = ("--batch-sizes", "2,3,5", "--budget", "5s")


def proof_of(folder):
    return normalise(json.loads((folder / "onnxproof-out" / "proof.json").read_text()))


@pytest.mark.skipif(not system.FORKS, reason="processes are looked at in /proc")
def test_a_killed_run_goes_on_and_leaves_nothing_behind(cli, tmp_path):
    write_subjects(tmp_path)
    command = ("prove", "m.py:scaled", "--onnx", "wrong.onnx", *FLAGS)
    assert cli(*command).returncode == 1
    undisturbed = proof_of(tmp_path)
    (tmp_path / "onnxproof-out").rename(tmp_path / "other")
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    words = [sys.executable, "-m", "onnxproof", *command]
    run = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    journal = tmp_path / "onnxproof-out" / JOURNAL
    assert wait_for(lambda: journal.exists() and journal.read_bytes().count(b"Compared") >= 3)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert list_leavings(tmp_path, run.pid) == []
    before = journal.read_bytes()
    assert cli(*command, "--resume").returncode == 1
    assert journal.read_bytes()[: len(before) - 200] == before[: len(before) - 200]
    assert proof_of(tmp_path) == undisturbed


@pytest.mark.slow
def test_from_python_the_same_question_is_answered_from_the_journal_and_another_model_is_not(tmp_path):
    def ask(module):
        return onnxproof.prove(module, (torch.ones(2, 4),), out=tmp_path, budget=2.0, batch_sizes=(2, 3), resume=True)

    torch.manual_seed(0)
    module = torch.nn.Linear(4, 3)
    ask(module)  # what it imports is part of the code that an answer is about
    first, second = ask(module), ask(module)
    assert [case.seconds for case in first.cases] == [case.seconds for case in second.cases]
    third = ask(torch.nn.Linear(4, 3))
    assert [case.name for case in third.cases] == [case.name for case in first.cases]
    assert [case.seconds for case in third.cases] != [case.seconds for case in first.cases]


def test_a_folder_that_cannot_be_written_costs_the_files_and_not_the_verdict(cli, tmp_path):
    write_subjects(tmp_path)
    (tmp_path / "onnxproof-out").mkdir()
    (tmp_path / "onnxproof-out" / "proof.json").mkdir()
    (tmp_path / "onnxproof-out" / JOURNAL).mkdir()
    told = cli("verify", "m.py:scaled", "--onnx", "wrong.onnx", "--fast", *FLAGS, "--json", "missing/x/proof.json")
    assert told.stdout.startswith("BLOCK")
    assert told.returncode == 2
    assert "proof.json cannot be written: Is a directory" in told.stderr
    assert "a run that is ended now cannot be resumed" in told.stderr
    assert (tmp_path / "missing" / "x" / "proof.json").is_file()
