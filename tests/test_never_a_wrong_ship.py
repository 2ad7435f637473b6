"""Whatever a forward does to its process, a wrong file does not ship: not by an exit code, not by a comparison that was tampered with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import onnxproof
from onnxproof.errors import TargetError
from onnxproof.subject.mode import keep_surroundings

HEAD = "import os, sys, threading, time\nimport numpy as np\nimport torch\nfrom torch import nn\n"
# What the forward does before it answers.
DEEDS = {
    "_exit": "os._exit(0)",
    "_exit later": "x.shape[0] == 7 and os._exit(0)",
    "exit": "sys.exit(0)",
    "exit later": "x.shape[0] == 7 and sys.exit(0)",
    "closes stdout": "sys.stdout.close()",
    "closes descriptors": "os.closerange(1, 64)",
    "chdir": "os.chdir('/')",
    "threads": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "numpy": "np.abs = np.subtract = lambda a, *more, **how: np.zeros_like(a)",
    "numpy's NaN": "np.isfinite = lambda a, **how: np.zeros(np.shape(a), bool)",
}
QUICK = ("_exit later", "exit", "numpy")
FLAGS = ("--fast", "--batch-sizes", "2,7", "--budget", "5s", "--case-timeout", "20s")


def write_pair(folder: Path, deed: str) -> None:
    """A module that doubles, and a file that does not."""
    body = f"class Net(nn.Module):\n    def forward(self, x):\n        {deed}\n        return x * 2\n"
    (folder / "m.py").write_text(HEAD + body + "def make():\n    return Net().eval(), (torch.ones(2, 3),)\n")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("x", "output")]
    weight = numpy_helper.from_array(np.array([2.5], np.float32), "w")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["output"])], "g", ends[:1], ends[1:], [weight])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder / "wrong.onnx"
    )


@pytest.mark.parametrize("deed", [pytest.param(d, marks=[] if d in QUICK else pytest.mark.slow) for d in DEEDS])
def test_a_wrong_file_does_not_ship(deed, cli, tmp_path):
    write_pair(tmp_path, DEEDS[deed])
    result = cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS)
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("BLOCK")
    assert "bug in onnxproof" not in result.stderr


# It stops at sixty, so that a mistake here does not fill the machine.
CLONES = "log = open('log', 'a+'); log.write(f'{os.getpid()}\\n'); log.seek(0); len(log.readlines()) < 60 and (log.close(), os.fork())"


def test_copies_that_a_forward_makes_of_its_process_end_with_it(cli, tmp_path):
    write_pair(tmp_path, CLONES)
    assert cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS).returncode == 1
    # Those of the stages; no copy ran a forward of its own.
    assert len(set((tmp_path / "log").read_text().split())) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["exit", "chdir", "numpy", "closes stdout"])
def test_nor_in_this_process(deed, cli, tmp_path):
    write_pair(tmp_path, DEEDS[deed])
    assert cli("prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS, "--in-process").returncode in (1, 2)


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
