"""The door to the system: with what Linux has taken away, everything goes on."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import onnxproof
from onnxproof import system
from onnxproof.pipeline import executors
from onnxproof.process import supervisor

SOURCES = Path(onnxproof.__file__).parent


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A system without fork, resource limits, /proc, affinity, timers and locks of files."""
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "resource", None)
    monkeypatch.setattr(system, "PROC", tmp_path / "none")
    monkeypatch.setattr(supervisor, "FORKS", False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.delattr(system.signal, "setitimer", raising=False)


def test_what_the_system_tells():
    assert system.read_peak() > 1 << 20
    assert 0 < system.read_available() <= system.read_memory()
    assert 1 <= system.count_cores() <= (os.cpu_count() or 1)
    rung = []
    with system.alarm(0.01, lambda: rung.append(1)):
        end = time.monotonic() + 10
        while not rung and time.monotonic() < end:
            pass
    assert rung == [1]


@pytest.mark.usefixtures("elsewhere")
def test_what_another_system_does_not_tell():
    assert (system.read_peak(), system.read_available(), system.read_memory()) == (0, 0, 0)
    assert system.count_cores() == os.cpu_count()
    with system.alarm(0.0, lambda: pytest.fail("it rang")):
        time.sleep(0.01)


@pytest.mark.usefixtures("elsewhere")
def test_a_proof_is_made_there_in_this_process_and_in_children(tmp_path):
    for isolate in (False, True):
        proof = onnxproof.prove(
            torch.nn.Linear(4, 3), (torch.ones(2, 4),), out=tmp_path, budget=1.0, batch_sizes=(2,), isolate=isolate
        )
        assert proof.verdict == "ship"
        assert "OX136" not in {finding.code for finding in proof.findings}


def test_where_children_cannot_be_supervised_it_is_done_here_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "SUPERVISES", False)
    inputs = (torch.ones(2, 4),)
    proof = onnxproof.prove(torch.nn.Linear(4, 3), inputs, out=tmp_path, budget=1.0, batch_sizes=(2,), isolate=True)
    assert proof.verdict == "ship"
    told = next(finding.message for finding in proof.findings if finding.code == "OX136")
    assert told == "this system cannot supervise children; it was proved in this process"


def test_nobody_else_opens_another_door():
    """`resource`, `fcntl`, `sysconf`, forks and affinities are asked for in one module, and where children are made."""
    words = {"resource", "fcntl", "msvcrt", "sysconf", "sched_getaffinity", "setitimer", "fork"}
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else []
            if words & {*names}:
                found.add(path.relative_to(SOURCES).as_posix())
    assert found <= {"system.py", "process/fork_server.py", "latency/machine.py"}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_memory_that_was_freed_needs_no_new_pages():
    code = """
import resource, sys
import numpy as np
from onnxproof.system import keep_memory
keep_memory() if sys.argv[1] == "keep" else None
np.ones(1 << 23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

    def count(how: str) -> int:
        command = [sys.executable, "-c", code, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert 10 * count("keep") < count("give back")
