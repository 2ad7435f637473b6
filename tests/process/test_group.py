"""Processes that end with whoever had them started, in whatever way that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from onnxproof.process import group
from onnxproof.process.group import Group
from onnxproof.system import SUPERVISES
from test_supervision import wait_for

pytestmark = pytest.mark.skipif(not SUPERVISES, reason="groups of processes are POSIX's")
# A process that has a stubborn one started, which starts another, tells their numbers, and waits.
STARTER = """
import signal, subprocess, sys, time
from pathlib import Path
from onnxproof.process.group import Group

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it

STUBBORN = "import signal; [signal.signal(one, signal.SIG_IGN) for one in (1, 2, 15)]; "
TWO = STUBBORN + "import os, time; other = os.fork(); other and print(os.getpid(), other, flush=True); time.sleep(600)"
group = Group(Path(sys.argv[1]))
with group.joined():
    started = subprocess.Popen([sys.executable, "-c", TWO], stdout=subprocess.PIPE, text=True)
print(started.stdout.readline(), flush=True)
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "log").touch()
    return tmp_path / "own"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked at in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whoever_is_killed_takes_all_of_them_along(folder, number):
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = [int(word) for word in starter.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(is_alive, pids))
    starter.send_signal(number)
    starter.communicate()
    assert wait_for(lambda: not any(map(is_alive, pids)))
    assert wait_for(lambda: not folder.exists())


@pytest.mark.parametrize("leader", ["alive", "killed"])
def test_they_can_be_ended_by_hand_also_where_their_leader_was_killed(folder, leader):
    own, together = os.getpgrp(), Group(folder)
    with together.joined():
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert os.getpgrp() == own
    assert started.poll() is None
    if leader == "killed":
        together._leader.kill()
    together.end()
    assert started.wait(20) == -signal.SIGKILL


def test_the_leader_of_a_session_stays_where_it_is(folder, monkeypatch):
    def refuse(*numbers):
        raise PermissionError(1, "Operation not permitted")

    together, own = Group(folder), os.getpgrp()
    monkeypatch.setattr(os, "setpgid", refuse)
    with together.joined():
        assert os.getpgrp() == own
    together.end()
    assert together._leader.poll() is not None


def test_where_there_are_no_groups_nothing_is_done(folder, monkeypatch):
    monkeypatch.setattr(group, "SUPERVISES", False)
    together, own = Group(folder), os.getpgrp()
    with together.joined():
        assert os.getpgrp() == own
    together.end()
    assert together._leader is None
