"""What the system tells of itself, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.latency import machine
from onnxproof.latency.machine import Look
from onnxproof.request.session import SessionSettings

BEFORE = Look(at=10.0, load=0.5, mhz=2000.0, busy=100.0, steal=1.0, own=20.0, throttled=3)


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "PROC", tmp_path)
    monkeypatch.setattr(machine, "SYS", tmp_path)
    monkeypatch.setattr(machine.os, "sysconf", lambda name: 100)
    return tmp_path


def test_what_others_used_is_what_we_did_not():
    after = replace(BEFORE, at=20.0, busy=125.0, own=30.0, throttled=5, load=1.5, mhz=1000.0)
    told = machine.describe(BEFORE, after)
    assert told.others == pytest.approx(1.5)
    assert (told.steal, told.throttled) == (0.0, 2)
    assert (told.load_before, told.load_after, told.mhz_before, told.mhz_after) == (0.5, 1.5, 2000.0, 1000.0)


def test_what_is_not_told_stays_unknown():
    dark = replace(BEFORE, busy=None, steal=None, throttled=None)
    told = machine.describe(dark, replace(BEFORE, at=20.0))
    assert (told.others, told.steal, told.throttled) == (None, None, None)


def test_counters_are_read(system):
    (system / "stat").write_text("cpu 100 200 300 9000 50 10 20 400 0 0\ncpu0 1 2 3\n")
    (system / "cpuinfo").write_text("model name : A processor\ncpu MHz : 1000\ncpu MHz : 3000\n")
    (system / "fs/cgroup").mkdir(parents=True)
    (system / "fs/cgroup/cpu.stat").write_text("nr_periods 9\nnr_throttled 4\n")
    look = machine.look()
    assert (look.busy, look.steal, look.mhz, look.throttled) == (6.3, 4.0, 2000.0, 4)


def test_a_system_without_counters_says_nothing(system):
    look = machine.look()
    assert (look.busy, look.steal, look.mhz, look.throttled) == (None, None, None, None)


def test_the_fingerprint_is_the_processors(system):
    (system / "cpuinfo").write_text("model name : A\n")
    first = machine.fingerprint_machine()
    assert first == machine.fingerprint_machine()
    (system / "cpuinfo").write_text("model name : B\n")
    assert machine.fingerprint_machine() != first


def test_threads_are_made_explicit():
    assert machine.set_threads(SessionSettings(threads=3)).threads == 3
    assert machine.set_threads(SessionSettings()).threads == machine.count_cores()
