"""Reading ahead in a thread, where that pays."""

from __future__ import annotations

import threading
import time

import pytest

from onnxproof.data.read_ahead import AHEAD, PROBED, prefetch, read_ahead


def test_an_error_while_reading_ahead_is_raised_where_rows_are_used():
    def broken():
        yield 1
        raise ValueError("disk")

    seen = []
    with pytest.raises(ValueError, match="disk"):
        seen.extend(prefetch(broken()))
    assert list(prefetch(iter(range(9)))) == list(range(9))


def test_no_more_than_a_few_are_read_ahead():
    made = []

    def items():
        for i in range(100):
            made.append(i)
            yield i

    ahead = prefetch(items())
    assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    ahead.close()
    time.sleep(0.05)
    assert len(made) <= 3 + AHEAD


@pytest.mark.parametrize(("slow_to_read", "ahead"), [(True, True), (False, False)])
def test_rows_are_read_ahead_only_where_reading_takes_a_good_share(slow_to_read, ahead, monkeypatch):
    readers, clock = [], [0.0]
    # A clock of its own: on a busy machine whatever is done takes a good share of the time.
    monkeypatch.setattr("onnxproof.data.read_ahead.time.perf_counter", lambda: clock[0])

    def source():
        for i in range(PROBED + 4):
            clock[0] += 1.0 if slow_to_read else 0.1
            readers.append(threading.current_thread())
            yield i

    seen = []
    for item in read_ahead(source()):
        clock[0] += 1.0
        seen.append(item)
    assert seen == list(range(PROBED + 4))
    assert {reader is threading.main_thread() for reader in readers[PROBED:]} == {not ahead}
