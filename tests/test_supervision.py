"""The user's process survives: crashes, hangs and endless memory become findings, and the run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.process import supervisor
from onnxproof.subject.module_copy import copy_module

# How children are started and stopped is what these are about.
pytestmark = pytest.mark.cold
HEADER = "import os, signal, time\nimport torch\nfrom torch import nn\n"


def run(cli, tmp_path, body: str, *flags: str) -> dict:
    (tmp_path / "hostile.py").write_text(HEADER + body)
    result = cli("prove", "hostile.py:make", "--json", "-", *flags)
    assert result.returncode in (0, 1), result.stderr
    return {"code": result.returncode, **json.loads(result.stdout)}


def test_a_crash_costs_its_case_and_the_run_goes_on(cli, tmp_path):
    # torch refuses nothing here and onnxruntime dies: LSTM at batch 0 aborts the process.
    proof = run(
        cli,
        tmp_path,
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lstm = nn.LSTM(4, 8, batch_first=True)\n"
        "    def forward(self, x):\n        return self.lstm(x)[0]\n"
        "def make():\n    return Net().eval(), (torch.randn(2, 5, 4),)\n",
        "--batch-sizes",
        "0,1,2",
    )
    crash = [f for f in proof["findings"] if f["code"] == "OX001"]
    assert crash, [f["code"] for f in proof["findings"]]
    assert crash[0]["evidence"]["signal"] == "SIGABRT"
    assert crash[0]["where"]["case"].startswith("batch=0/")
    assert crash[0]["evidence"]["stage"] == "onnxruntime"
    assert crash[0]["severity"] == "block"
    assert {case["name"].split("/")[0] for case in proof["cases"] if case["outputs"]} >= {"batch=1", "batch=2"}


def test_a_hang_is_stopped_and_named(cli, tmp_path):
    proof = run(
        cli,
        tmp_path,
        "class Net(nn.Module):\n    def forward(self, x):\n        if not torch.compiler.is_exporting() and x.shape[0] == 7:\n            time.sleep(1000)\n        return x * 2\n"
        "def make():\n    return Net(), (torch.randn(2, 3),)\n",
        "--case-timeout",
        "8s",
    )
    hang = [f for f in proof["findings"] if f["code"] == "OX002"]
    assert hang
    assert hang[0]["where"]["case"].startswith("batch=7/")
    assert any(case["name"].startswith("batch=128/") for case in proof["cases"])


def test_an_export_that_dies_is_a_finding_and_torchscript_is_tried(cli, tmp_path):
    body = (
        "class Net(nn.Module):\n    def forward(self, x):\n        if torch.compiler.is_exporting():\n            os.kill(os.getpid(), signal.SIGSEGV)\n"
        "        return x * 2\ndef make():\n    return Net(), (torch.randn(2, 3),)\n"
    )
    healed = run(cli, tmp_path, body)
    assert healed["verdict"] == "ship"
    assert any(f["code"] == "OX107" and "SIGSEGV" in f["message"] for f in healed["findings"])
    lost = run(cli, tmp_path, body, "--exporter", "dynamo")
    assert lost["verdict"] == "block"
    assert any(f["code"] == "OX001" and f["evidence"]["stage"] == "export" for f in lost["findings"])


@pytest.mark.slow
def test_exporting_twice_works_because_each_export_has_its_own_process(cli, tmp_path):
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lstm = nn.LSTM(4, 8, batch_first=True)\n"
        "    def forward(self, x):\n        return self.lstm(x)[0]\n"
        "def make():\n    return Net().eval(), (torch.randn(2, 5, 4),)\n"
    )
    for _ in range(2):
        assert run(cli, tmp_path, body, "--dynamic", "x:0=batch,1=seq", "--batch-sizes", "1,2")["verdict"] == "ship"


def test_isolate_in_python(tmp_path):
    proof = onnxproof.prove(torch.nn.Linear(3, 2), (torch.randn(2, 3),), out=tmp_path, isolate=True)
    assert proof.verdict == "ship"


@pytest.mark.slow
def test_children_of_one_fork_server_share_nothing(cli, tmp_path):
    # What one child does to its modules is not there in the next: the export's trace is not seen while verifying.
    proof = run(
        cli,
        tmp_path,
        "class Net(nn.Module):\n    def forward(self, x):\n        seen = getattr(torch, 'seen', 0)\n        torch.seen = 1\n        return x * 2\n"
        "def make():\n    assert not hasattr(torch, 'seen'), 'another child was here'\n    return Net(), (torch.randn(2, 3),)\n",
    )
    assert proof["verdict"] == "ship"


class Locked(nn.Module):
    """Holds what can be neither copied nor pickled."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("seen", torch.zeros(1))
        self.lock, self.steps = threading.Lock(), (i for i in range(3))

    def forward(self, x):
        with self.lock:
            return self.second(torch.relu(self.first(x)))


def test_ox136_a_module_that_cannot_be_pickled_is_proved_in_this_process(tmp_path):
    inputs = (torch.randn(2, 4),)
    proof = onnxproof.prove(Locked().eval(), inputs, out=tmp_path, isolate=True, budget=1.0)
    assert proof.verdict == "ship"
    assert "_thread.lock" in next(f.message for f in proof.findings if f.code == "OX136")
    near = onnxproof.prove(Locked().eval(), inputs, out=tmp_path, budget=1.0)
    assert {f.code for f in near.findings if f.weight} == set()
    assert "OX136" not in {f.code for f in near.findings}


def test_a_module_that_cannot_be_copied_has_a_float64_truth_and_its_mode_is_tried(tmp_path):
    proof = onnxproof.prove(Locked(), (torch.randn(2, 4),), out=tmp_path, budget=1.0)
    assert proof.verdict == "ship"
    assert "OX111" not in {f.code for f in proof.findings}
    note = next(f for f in proof.findings if f.code == "OX102")
    assert "makes no difference" in note.message


def test_a_twin_has_tensors_of_its_own_and_keeps_ties():
    module = Locked()
    other = copy_module(module).double()
    assert module.first.weight.dtype == torch.float32
    assert other.first.weight is other.second.weight
    assert other.first.weight.dtype == torch.float64
    other.seen += 1
    assert module.seen.item() == 0
    assert other.lock is module.lock


SLEEPER = (
    "class Net(nn.Module):\n    def forward(self, x):\n        if not torch.compiler.is_exporting():\n"
    "            open('children', 'a').write(f'{os.getpid()}\\n')\n            time.sleep(600)\n        return x * 2\n"
    "def make():\n    return Net().eval(), (torch.randn(2, 3),)\n"
)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


@pytest.mark.skipif(not supervisor.FORKS, reason="processes are looked at in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nobody_is_left_behind(how, tmp_path):
    """SIGINT as a terminal sends it, to the whole group; SIGKILL to the command alone."""
    (tmp_path / "hostile.py").write_text(HEADER + SLEEPER)
    command = [sys.executable, "-c", "from onnxproof.cli import main; main()", "prove", "hostile.py:make"]
    parent = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert wait_for((tmp_path / "children").exists)
    os.killpg(parent.pid, how) if how == signal.SIGINT else parent.kill()
    _, told = parent.communicate(timeout=60)
    if how == signal.SIGINT:
        assert parent.returncode == 130, told
        assert "Traceback" not in told
        assert "bug" not in told
    for line in (tmp_path / "children").read_text().split():
        assert wait_for(lambda pid=int(line): gone(pid), 20)
