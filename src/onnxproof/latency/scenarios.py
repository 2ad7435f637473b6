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
    last: Any
    """The output of one of the last calls."""


def arrivals(rate: float, count: int, seed: int = 0) -> NDArray[np.int64]:
    """When requests arrive, in nanoseconds from the start: independently of each other, at a mean rate per second."""
    gaps = np.random.default_rng(seed).exponential(1e9 / rate, count)
    return np.cumsum(gaps).astype(np.int64)


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
    errors: list[BaseException] = []
    last: list[Any] = [None]
    start = clock()

    def work() -> None:
        try:
            with around():
                while not errors and (i := next(tickets)) < len(due_at):
                    due = start + due_at[i]
                    while (now := clock()) < due:
                        sleep((due - now) / 1e9)
                    last[0] = call()
                    latencies[i], waits[i] = clock() - due, now - due
        except BaseException as error:  # told to the caller: a thread's exception would be lost
            errors.append(error)

    if workers == 1:
        work()
    else:
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    late = float(np.mean(np.asarray(due_at) + waits > due_at[-1])) if len(due_at) > 1 else 0.0
    return Served(latencies, waits, late, (clock() - start) / 1e9, last[0])


class Bursts:
    """Calls by several workers at once, as something to time: one burst keeps all workers busy for about a window."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers)

    def timed(self, name: str, call: Callable[[], Any], around: Around, typical_ns: float) -> Timed:
        """A burst of calls: each worker makes as many as fill a window."""
        each = max(1, round(WINDOW_NS / max(typical_ns, 1.0)))

        def work() -> Any:
            with around():
                for _ in range(each - 1):
                    call()
                return call()

        def burst() -> Any:
            futures = [self._pool.submit(work) for _ in range(self._workers)]
            return [future.result() for future in futures][-1]

        return Timed(name, burst, calls=each * self._workers, threads=2)  # its workers may spin

    def close(self) -> None:
        """End the workers."""
        self._pool.shutdown()
