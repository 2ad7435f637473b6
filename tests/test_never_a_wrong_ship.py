"""Whatever a forward does to its process, a wrong file does not ship: not by an exit code, not by a comparison that was tampered with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.reliability.subjects import write_scaling

import onnxproof
from onnxproof.errors import TargetError
from onnxproof.subject.mode import keep_surroundings

HEAD = "import os, random, signal, sys, threading, time, traceback\nimport numpy as np\nimport torch\nfrom torch import nn\n"
LATER = "self.calls = getattr(self, 'calls', 0) + 1"
# Three times and no more: should a twin live on, there are eight and not a thousand.
FORKS = "self.forked = getattr(self, 'forked', 0) + 1; self.forked <= 3 and os.fork()"
# What the forward does before it answers.
DEEDS = {
    "_exit": "os._exit(0)",
    "_exit later": "x.shape[0] == 7 and os._exit(0)",
    "kills itself": "os.kill(os.getpid(), 9)",
    "aborts": "os.abort()",
    "exit": "sys.exit(0)",
    "exit later": "x.shape[0] == 7 and sys.exit(0)",
    "forks": FORKS,
    "closes stdout": "sys.stdout.close()",
    "closes descriptors": "os.closerange(1, 64)",
    "floods stdout": "print('x' * 1_000_000)",
    "floods descriptors": "os.write(1, b'x' * 1_000_000), os.write(2, b'SHIP ' * 1_000)",
    "chdir": "os.chdir('/')",
    "threads": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "ignores signals": "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]",
    "an alarm": "signal.setitimer(signal.ITIMER_REAL, 0.01)",
    "numpy": "np.abs = np.subtract = lambda a, *more, **how: np.zeros_like(a)",
    "numpy's NaN": "np.isfinite = lambda a, **how: np.zeros(np.shape(a), bool)",
    "torch": "torch.equal = torch.allclose = lambda *a, **how: True",
    "torch's NaN": "torch.isfinite = torch.Tensor.isfinite = lambda a: torch.zeros_like(a, dtype=torch.bool)",
    "writes its input": "x.zero_()",
    "writes its weight": "self.weight.data.fill_(2.5)",
    "writes its weight later": "x, self.weight.data[0] = x * self.weight / 2, 2.5",
    "another answer later": f"{LATER}; x = x * (1 if self.calls == 1 else 1.25)",
    "another answer in float64": "x = x * 1.25 if x.dtype == torch.float64 else x",
    "another answer when exported": "x = x * 1.25 if torch.compiler.is_exporting() or torch.jit.is_tracing() else x",
    "another answer when watched": "x = x * 1.25 if any('onnxproof' in f.filename for f in traceback.extract_stack()) else x",
    "reseeds": "torch.manual_seed(0), np.random.seed(0), random.seed(0)",
    "default dtype": "torch.set_default_dtype(torch.float16)",
    "number of threads": "torch.set_num_threads(7)",
    "grad mode": "torch.set_grad_enabled(True)",
    "rounds elsewhere": "torch.set_flush_denormal(True), torch.set_float32_matmul_precision('medium')",
}
# What differs in nothing from another deed once it is done in this process.
SAME = ("_exit later", "exit later", "kills itself", "aborts")
QUICK = ("_exit later", "exit", "numpy")
FLAGS = ("--fast", "--batch-sizes", "2,7", "--budget", "5s", "--case-timeout", "20s")


def write_pair(folder: Path, deed: str) -> None:
    """A module that doubles, a file that does too, and one that does not."""
    body = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.weight = nn.Parameter(torch.ones(1) * 2)\n"
    body += f"    def forward(self, x):\n        {deed}\n        return x * self.weight\n"
    (folder / "m.py").write_text(HEAD + body + "def make():\n    return Net().eval(), (torch.ones(2, 3),)\n")
    write_scaling(folder / "right.onnx", 2.0)
    write_scaling(folder / "wrong.onnx", 2.5)


@pytest.mark.parametrize("deed", [pytest.param(d, marks=[] if d in QUICK else pytest.mark.slow) for d in DEEDS])
def test_a_wrong_file_does_not_ship(deed, cli, tmp_path):
    write_pair(tmp_path, DEEDS[deed])
    result = cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS)
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("REVIEW" if deed == "writes its weight" else "BLOCK")
    assert "bug in onnxproof" not in result.stderr


# It stops at sixty, so that a mistake here does not fill the machine.
CLONES = "log = open('log', 'a+'); log.write(f'{os.getpid()}\\n'); log.seek(0); len(log.readlines()) < 60 and (log.close(), os.fork())"


def test_copies_that_a_forward_makes_of_its_process_end_with_it(cli, tmp_path):
    write_pair(tmp_path, CLONES)
    assert cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS).returncode == 1
    # Those of the stages; no copy ran a forward of its own.
    assert len(set((tmp_path / "log").read_text().split())) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("deed", [deed for deed in DEEDS if deed not in SAME])
def test_nor_in_this_process(deed, cli, tmp_path):
    write_pair(tmp_path, DEEDS[deed])
    result = cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS, "--in-process")
    assert result.returncode in (1, 2)
    assert "bug in onnxproof" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "> /dev/full", "| true; exit ${PIPESTATUS[0]}"])
def test_what_cannot_be_told_is_not_called_a_bug(closed, tmp_path):
    write_pair(tmp_path, "pass")
    command = f"{sys.executable} -m onnxproof prove m.py:make --onnx wrong.onnx {' '.join(FLAGS)} {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert "bug in onnxproof" not in done.stderr


class Leaves(torch.nn.Module):
    def forward(self, x):
        os.chdir("/")
        return x * 2


class Ends(torch.nn.Module):
    def forward(self, x):
        sys.exit(0)


def test_a_forward_that_goes_elsewhere_does_not_take_the_file_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proof = onnxproof.prove(Leaves(), (torch.ones(2, 3),), out="out", budget=1.0)
    assert proof.verdict == "ship"
    assert (tmp_path / "out" / "model.onnx").is_file()
    assert Path.cwd() == tmp_path


def test_a_forward_that_exits_does_not_end_the_callers_process(tmp_path):
    with pytest.raises(TargetError, match=r"the module ends the process in stage export: SystemExit\(0\)"):
        onnxproof.prove(Ends(), (torch.ones(2, 3),), out=tmp_path)


def test_numpy_is_put_back_and_types_are_left_alone(monkeypatch):
    before, kind = np.abs, np.bool
    with keep_surroundings():
        np.abs, np.bool = len, bool
    assert np.abs is before
    assert np.bool is bool
    np.bool = kind
