"""Tables in batches: cut, joined, and read ahead where that pays."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from onnxproof.cases.data import Table

Item = TypeVar("Item")
PROBED = 6
"""Batches after which it is known what reading costs."""
WORTH = 0.25
"""The share of the work from which reading ahead pays. Below it, the reading thread costs more than it saves: it takes
a core from the models' threads, which then wait for each other."""


def length(table: Table) -> int:
    """Rows of a table."""
    return next((len(array) for array in table.values()), 0)


def window(tables: Iterable[Table], skip: int, count: int | None) -> Iterator[Table]:
    """`count` rows after the first `skip`."""
    left = count
    for table in tables:
        rows = length(table)
        if skip >= rows:
            skip -= rows
            continue
        end = rows if left is None else min(rows, skip + left)
        if skip or end < rows:
            table = {name: array[skip:end] for name, array in table.items()}
        if left is not None:
            left -= end - skip
        skip = 0
        if length(table):
            yield table
        if left == 0:
            return


def rechunk(tables: Iterable[Table], size: int) -> Iterator[Table]:
    """The same rows in tables of `size` rows; only the last may be smaller."""
    held: list[Table] = []
    count = 0
    for table in tables:
        if not held and length(table) == size:
            yield table
            continue
        held.append(table)
        count += length(table)
        if count >= size:
            joined = _joined(held)
            full = count - count % size
            for first in range(0, full, size):
                yield {name: array[first : first + size] for name, array in joined.items()}
            held = [{name: array[full:] for name, array in joined.items()}] if full < count else []
            count -= full
    if count:
        yield _joined(held)


def _joined(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def prefetch(tables: Iterator[Item], depth: int = 2) -> Iterator[Item]:
    """The same tables, read ahead in a thread while the models run."""
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for table in tables:
                if not put((table, None)):
                    return
            put((None, None))
        except BaseException as error:  # it is raised where the tables are used
            put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            table, error = waiting.get()
            if error is not None:
                raise error
            if table is None:
                return
            yield table
    finally:
        stop.set()


def read_ahead(tables: Iterator[Item]) -> Iterator[Item]:
    """The same tables; they are read ahead in a thread where reading the first ones took a good share of the time."""
    reading = working = 0.0
    for table, seconds in _timed(islice(tables, PROBED)):
        reading += seconds
        began = time.perf_counter()
        yield table
        working += time.perf_counter() - began
    yield from prefetch(tables) if reading > WORTH * working else tables


def _timed(tables: Iterator[Item]) -> Iterator[tuple[Item, float]]:
    """Each with the seconds it took to read."""
    while True:
        began = time.perf_counter()
        try:
            table = next(tables)
        except StopIteration:
            return
        yield table, time.perf_counter() - began
