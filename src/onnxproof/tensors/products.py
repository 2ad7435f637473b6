"""Products with a large narrow weight, as they would be with the same weight in float64.

A weight that is widened whole goes through memory three times and takes twice its room. Here it is widened a block at a time, small enough
to stay in the cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch

# Elements from which on a weight is large.
LARGE = 1 << 20
# Elements of a block.
BLOCK = 400_000


def multiply_widened(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """A matrix of float64 times a narrower one."""
    out, weight = left.new_empty(left.shape[0], right.shape[1]), right.detach()
    columns = max(1, BLOCK // max(1, right.shape[0]))

    def multiply_block(start: int) -> None:
        block = weight[:, start : start + columns].to(torch.float64)
        torch.mm(left, block, out=out[:, start : start + columns])

    _share(multiply_block, range(0, right.shape[1], columns))
    return out


def _share(work: Callable[[int], None], places: range) -> None:
    """Do some work at every place, each of torch's threads at one of its own: a block is so small that several at one would wait for each
    other, on a busy machine for longer than they work."""
    threads, left = torch.get_num_threads(), iter(places)

    def work_on() -> None:
        for place in left:  # whoever asks gets the next one
            work(place)

    torch.set_num_threads(1)
    try:
        helping = [
            _start_threads(threads - 1, os.getpid()).submit(work_on) for _ in range(min(threads, len(places)) - 1)
        ]
        work_on()
        for helper in helping:
            helper.result()
    finally:
        torch.set_num_threads(threads)


@cache
def _start_threads(count: int, process: int) -> ThreadPoolExecutor:
    """Threads that have no others to help them; of this process, for a forked one has none of them."""
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
