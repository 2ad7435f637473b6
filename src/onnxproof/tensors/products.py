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
    starts = range(0, right.shape[1], columns)
    left_over = iter(starts)  # whoever asks gets the next one

    def multiply_blocks() -> None:
        # One room for all blocks: memory that is asked for anew is slower than what is done with it.
        room = torch.empty_like(weight[:, :columns], dtype=torch.float64)
        for start in left_over:
            narrow = weight[:, start : start + columns]
            wide = room[:, : narrow.shape[1]].copy_(narrow)
            torch.mm(left, wide, out=out[:, start : start + columns])

    _share(multiply_blocks, len(starts))
    return out


def _share(work: Callable[[], None], parts: int) -> None:
    """Have some work done by as many threads as torch has, each by itself: parts of it are so small that several at one would wait for each
    other, on a busy machine for longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        helpers = [_start_threads(threads - 1, os.getpid()).submit(work) for _ in range(min(threads, parts) - 1)]
        work()
        for helper in helpers:
            helper.result()
    finally:
        torch.set_num_threads(threads)


@cache
def _start_threads(count: int, process: int) -> ThreadPoolExecutor:
    """Threads that have no others to help them; of this process, for a forked one has none of them."""
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
