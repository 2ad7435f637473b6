"""Another interpreter's onnxruntime: whatever happens there is an answer here, and the next question is answered."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import TensorProto

from candidates.small_models import identity, sums
from onnxproof.candidates.python_environment import PythonEnvironment
from onnxproof.errors import FindingError, Rejected, UserError
from onnxproof.pipeline.conduct import conduct
from onnxproof.request.request import Request, VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Policy

SETTINGS = SessionSettings()
HOSTILE = """#!{python}
import importlib.util, os, signal, sys, time
spec = importlib.util.spec_from_file_location("serve", sys.argv[1])
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)


class Hostile(serve.Server):
    def open(self, header, blobs):
        if b"kill me" in bytes(blobs[0]):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().open(header, blobs)

    def run(self, header, blobs):
        number = int(serve.unpack(header["arrays"], blobs)["x"][0])
        if number == 1:
            print("something to read", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        if number == 2:
            time.sleep(600)
        if number == 3:
            serve._say = lambda pipe, header, blobs: os.write(pipe, b"rubbish that is long enough to be an answer")
        if number == 4:
            raise MemoryError("not that much")
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 6:
            print("noise on standard output", flush=True)
            os.write(1, b"and below it\\n")
        if number == 10:
            raise ValueError(f"{{len(self._sessions)}} sessions are open")
        told, answer = super().run(header, blobs)
        if number == 7:
            told["arrays"][0][0] = "another"
        if number == 8:
            told["arrays"][0][1] = "<i4"
        if number == 9:
            told["arrays"][0][2] = [77]
        return told, answer


serve.Server = Hostile
serve.main()
"""


def interpreter(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def hostile(tmp_path):
    there = PythonEnvironment(interpreter(tmp_path, HOSTILE.format(python=sys.executable)), patience=3.0)
    yield there
    there.stop()


def ask(session, number: int) -> np.ndarray:
    given = np.array([number, 0.5], np.float32)
    answer = session.run({"x": given})["y"]
    np.testing.assert_array_equal(answer, given)
    return answer


@pytest.mark.parametrize(
    ("number", "kind", "told"),
    [
        (1, Rejected, "killed by SIGABRT\nsomething to read"),
        (2, Rejected, "no answer within 3 s"),
        (3, Rejected, "said b'rubbish that is"),
        (4, MemoryError, "not that much"),
        (5, MemoryError, "killed by SIGKILL"),
        (7, Rejected, "answered 'another' where the file has 'y'"),
        (8, Rejected, "answered y as int32 where the file has tensor.float"),
        (9, Rejected, "something that is no array"),
    ],
)
def test_what_happens_there_is_an_answer_here_and_the_next_run_is_answered(hostile, number, kind, told):
    session = hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS)
    ask(session, 0)
    with pytest.raises(kind, match=told):
        ask(session, number)
    ask(session, 0)
    assert hostile.lost == (0 if number in (4, 7, 8, 9) else 1)


def test_what_is_printed_there_does_not_get_into_the_answer(hostile):
    session = hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS)
    ask(session, 6)
    assert hostile.lost == 0


def test_a_session_survives_the_death_that_another_one_caused(hostile):
    model = identity(TensorProto.FLOAT, ["n"])
    one, other = hostile.open(model, SETTINGS), hostile.open(model, SETTINGS)
    with pytest.raises(Rejected):
        ask(one, 1)
    ask(other, 0)
    ask(one, 0)


def test_a_file_that_kills_it_is_a_finding_with_the_signal(hostile):
    with pytest.raises(FindingError) as lost:
        hostile.open(b"kill me", SETTINGS)
    assert lost.value.finding.code == "OX001"
    assert "killed by SIGSEGV while it opened the file" in lost.value.finding.message
    assert lost.value.finding.evidence["signal"] == "SIGSEGV"
    ask(hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS), 0)


def test_sessions_that_nobody_holds_are_closed_there(hostile):
    kept = hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS)
    hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS)
    dropped = hostile.open(identity(TensorProto.FLOAT, ["n"]), SETTINGS)
    dropped.close()
    with pytest.raises(Rejected, match="1 sessions are open"):
        ask(kept, 10)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lstm = torch.nn.LSTM(4, 8, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


FAULTY = """#!{python}
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("serve", sys.argv[1])
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)


class Faulty(serve.Server):
    def run(self, header, blobs):
        told, answer = super().run(header, blobs)
        {fault}
        return told, answer


serve.Server = Faulty
serve.main()
"""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("os.abort()", "killed by SIGABRT"),
        ("serve._say = lambda pipe, *_: os.write(pipe, b'rubbish that is long enough to be one')", "rubbish that is"),
        ("told['arrays'][0][0] = 'another'", "answered 'another' where the file has 'output'"),
        ("told['arrays'][0][1] = '<i4'", "answered output as int32"),
        ("told['arrays'][0][2] = [77]", "something that is no array"),
    ],
)
def test_a_fault_of_the_other_side_is_a_finding_of_the_proof(fault, told, tmp_path):
    path = interpreter(tmp_path, FAULTY.format(python=sys.executable, fault=fault))
    settings = VerifySettings(session=SessionSettings(runtime=f"python:{path}"), budget=0.2)
    held = (torch.nn.ReLU(), (torch.ones(2, 3),))
    proof = conduct(Request(held=held, verify=settings, out=str(tmp_path / "out"), in_process=True), Policy())
    assert proof.verdict == "block"
    gating = [finding for finding in proof.findings if finding.weight]
    assert any(told in f"{finding.message} {finding.evidence}" for finding in gating), gating


def test_an_input_that_kills_the_runtime_costs_its_case_and_not_this_process(tmp_path):
    # onnxruntime aborts its process on an LSTM without rows.
    session = SessionSettings(runtime=f"python:{sys.executable}")
    verify = VerifySettings(session=session, batch_sizes=(0, 1, 2), isolated=True, budget=20.0)
    request = Request(
        held=(Recurrent().eval(), (torch.randn(2, 5, 4),)), out=str(tmp_path), verify=verify, in_process=True
    )
    proof = conduct(request, Policy())
    by_size = {
        size: {case.status for case in proof.cases if case.name.startswith(f"batch={size}/")} for size in (0, 1, 2)
    }
    assert by_size == {0: {"failed"}, 1: {"compared"}, 2: {"compared"}}
    blocking = [finding for finding in proof.findings if finding.severity == "block"]
    assert [finding.code for finding in blocking] == ["OX221"]
    assert "was killed by SIGABRT" in blocking[0].message


# --- the interpreter --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "expected an interpreter of Python 3.9 or later that has onnxruntime, came No such file or directory"),
        ("#!/bin/sh\nexit 3\n", "ended with exit code 3"),
        ("#!/bin/sh\necho I am not the one you are looking for\ncat >/dev/null\n", "I am not the on"),
        ("#!/bin/sh\necho a reason >&2; exec 0<&-; kill -SEGV $$\n", "killed by SIGSEGV.*a reason"),
        (
            f'#!/bin/sh\nexec {sys.executable} -S "$@"\n',
            "No module named 'numpy'.*python -m pip install onnxruntime numpy",
        ),
    ],
    ids=["not there", "no python", "talks", "dies", "empty"],
)
def test_an_interpreter_that_cannot_serve_is_the_users_error(tmp_path, text, told):
    path = str(tmp_path / "python") if text is None else interpreter(tmp_path, text)
    with pytest.raises(UserError, match=f"(?s)--runtime python:{path}.*{told}"):
        PythonEnvironment(path).providers()


def test_it_is_started_when_it_is_first_asked_and_with_its_own_libraries(tmp_path, monkeypatch):
    (tmp_path / "onnxruntime.py").write_text("raise RuntimeError('the library of another interpreter')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    there = PythonEnvironment(sys.executable)
    assert there._dialogue is None
    versions = there.versions()
    assert f"(Python {sys.version.split()[0]}" in versions["runtime"]
    there.stop()


def test_a_relative_path_to_a_file_is_opened_from_here(tmp_path, monkeypatch):
    (tmp_path / "sums.onnx").write_bytes(sums())
    monkeypatch.chdir(tmp_path)
    there = PythonEnvironment(os.path.relpath(sys.executable))
    assert list(there.open(Path("sums.onnx"), SETTINGS).run({"x": np.ones((1, 3))})) == ["more", "largest"]
    there.stop()


def test_it_ends_with_the_process_that_asked_even_while_it_computes(tmp_path):
    python = interpreter(tmp_path, HOSTILE.format(python=sys.executable))
    (tmp_path / "model.onnx").write_bytes(identity(TensorProto.FLOAT, ["n"]))
    asking = (
        "import sys, threading, time\nimport numpy as np\nfrom pathlib import Path\n"
        "from onnxproof.candidates.python_environment import PythonEnvironment\n"
        "from onnxproof.request.session import SessionSettings\n"
        f"there = PythonEnvironment({python!r})\n"
        f"session = there.open(Path({str(tmp_path / 'model.onnx')!r}).read_bytes(), SessionSettings())\n"
        "print(there._dialogue._process.pid, flush=True)\n"
        "session.run({'x': np.array([2.0], np.float32)})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", asking], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    end = time.monotonic() + 20
    while not gone(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert gone(pid)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
