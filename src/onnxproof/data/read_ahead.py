"""Batches that are read in a thread while the models run, where that pays."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
# Batches after which it is known what reading costs.
PROBED = 6
# The share of the work from which reading ahead pays. Below it, the reading thread costs more than it saves: it takes
# a core from the models' threads, which then wait for each other.
WORTH = 0.25
AHEAD = 2


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made ahead in a thread; what goes wrong there is raised where they are used."""
    end = object()
    # One thread: a generator cannot be advanced by two at once.
    pool = ThreadPoolExecutor(1)
    try:
        waiting = deque(pool.submit(next, items, end) for _ in range(AHEAD))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, items, end))
            yield item  # type: ignore[misc]  # not the end
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; they are made ahead in a thread where making the first ones took a good share of the time."""
    reading = working = 0.0
    began = time.perf_counter()
    for item in islice(items, PROBED):
        reading, began = reading + time.perf_counter() - began, time.perf_counter()
        yield item
        working, began = working + time.perf_counter() - began, time.perf_counter()
    yield from prefetch(items) if reading > WORTH * working else items
