"""Work in the command's own process: who ends it does not give the exit code, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from test_never_a_wrong_ship import FLAGS, FORKS, write_pair
from test_supervision import gone, wait_for

ENDS = {"os._exit(0)": "exit code 0", "os.kill(os.getpid(), 9)": "SIGKILL", "os.abort()": "SIGABRT"}


@pytest.mark.parametrize("deed", ENDS)
def test_a_module_that_ends_the_command_does_not_end_it_well(deed, cli, tmp_path):
    write_pair(tmp_path, deed)
    result = cli("prove", "m.py:make", "--onnx", "right.onnx", *FLAGS, "--in-process")
    assert result.returncode == 2
    assert f"expected a verdict, but the process ended in the midst of the work ({ENDS[deed]})" in result.stderr


@pytest.mark.parametrize(("file", "code"), [("right", 0), ("wrong", 1), ("missing", 2)])
def test_an_end_of_its_own_is_passed_on(file, code, cli, tmp_path):
    write_pair(tmp_path, "threading.Thread(target=time.sleep, args=(600,)).start()")
    result = cli("prove", "m.py:make", "--onnx", f"{file}.onnx", *FLAGS, "--in-process")
    assert result.returncode == code
    assert "in the midst" not in result.stderr


def test_a_fork_of_the_modules_does_not_speak(cli, tmp_path):
    write_pair(tmp_path, FORKS)
    result = cli("verify", "m.py:make", "--onnx", "right.onnx", *FLAGS, "--in-process")
    assert result.returncode == 0
    assert result.stdout.count("SHIP") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_who_works_goes_with_who_watches(how, tmp_path):
    write_pair(tmp_path, "open('worker', 'w').write(str(os.getpid())), time.sleep(600)")
    command = [sys.executable, "-m", "onnxproof", "verify", "m.py:make", "--onnx", "right.onnx", "--in-process"]
    parent = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    assert wait_for(lambda: (tmp_path / "worker").exists() and (tmp_path / "worker").read_text())
    worker = int((tmp_path / "worker").read_text())
    assert worker != parent.pid
    os.kill(parent.pid, how)
    parent.communicate(timeout=60)
    assert wait_for(lambda: gone(worker))
