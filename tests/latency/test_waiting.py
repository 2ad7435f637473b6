"""How long threads waited for a core."""

from __future__ import annotations

import os
import time
from multiprocessing import Process

import pytest

from onnxproof.latency import waiting
from onnxproof.latency.waiting import read_waiting


def spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no such call")
def test_who_shares_a_core_waits():
    """Two that never rest on one core: each waits about half of the time."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        other = Process(target=spin, args=(3.0,), daemon=True)
        other.start()
        time.sleep(0.2)
        waited = read_waiting()
        spin(1.0)
        assert waited is not None
        assert (read_waiting() or 0) - waited > 2e8
    finally:
        os.sched_setaffinity(0, before)
        other.kill()


def test_a_system_that_does_not_tell_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(waiting, "TASKS", tmp_path)
    assert read_waiting() is None
