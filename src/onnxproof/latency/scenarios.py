"""Besides one call after the other: offline (as much as possible) and server (requests arrive when they arrive)."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.latency.harness import WINDOW_NS, Clock, Timed

Around = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Served:
    """What requests met. Times in nanoseconds."""

    latencies: NDArray[np.int64]
    """From the arrival, not from the start: a request that waits behind a slow one is late too."""
    waits: NDArray[np.int64]
    backlog: float
    """Share of the requests that had not been started when the last one arrived."""
    seconds: float


def draw_arrivals(rate: float, count: int, seed: int = 0) -> NDArray[np.int64]:
    """When requests arrive, in nanoseconds from the start: independently of each other, at a mean rate per second."""
    return np.cumsum(np.random.default_rng(seed).exponential(1e9 / rate, count)).astype(np.int64)


def serve(
    call: Callable[[], Any],
    offsets: Sequence[int] | NDArray[np.int64],
    *,
    workers: int = 1,
    around: Around = nullcontext,
    clock: Clock = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Served:
    """Answer requests in the order of their arrival, each by the first worker that is free."""
    due_at = [int(offset) for offset in offsets]
    latencies, waits = np.zeros(len(due_at), np.int64), np.zeros(len(due_at), np.int64)
    tickets = itertools.count()  # next() on it is atomic
    failed = threading.Event()
    start = clock()

    def work() -> None:
        try:
            with around():
                while not failed.is_set() and (i := next(tickets)) < len(due_at):
                    due = start + due_at[i]
                    while (now := clock()) < due:
                        sleep((due - now) / 1e9)
                    call()
                    latencies[i], waits[i] = clock() - due, now - due
        except BaseException:
            failed.set()  # the others need not go on
            raise

    if workers == 1:
        work()
    else:
        with ThreadPoolExecutor(workers) as pool:
            for future in [pool.submit(work) for _ in range(workers)]:
                future.result()
    late = float(np.mean(np.asarray(due_at) + waits > due_at[-1])) if len(due_at) > 1 else 0.0
    return Served(latencies, waits, late, (clock() - start) / 1e9)


def measure_capacity(call: Callable[[], Any], around: Around, typical_ns: float) -> float:
    """Requests per second that one worker can answer when all are there at once: handing them out costs time too."""
    count = max(20, min(2000, round(0.2e9 / typical_ns)))
    return count / serve(call, [0] * count, around=around).seconds


def make_burst(
    pool: ThreadPoolExecutor, workers: int, name: str, call: Callable[[], Any], around: Around, typical_ns: float
) -> Timed:
    """Calls by several workers at once, as something to time: each worker makes as many as fill a window."""
    each = max(1, round(WINDOW_NS / max(typical_ns, 1.0)))

    def work() -> Any:
        with around():
            for _ in range(each - 1):
                call()
            return call()

    def all_at_once() -> Any:
        futures = [pool.submit(work) for _ in range(workers)]
        return [future.result() for future in futures][-1]

    return Timed(name, all_at_once, calls=each * workers, threads=2)  # its workers may spin
