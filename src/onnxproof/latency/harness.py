"""The timed loop: blocks of the contenders in turns, in random order, until there are enough of them.

Every block of a round fills the same window of time, so what happens to the machine hits all contenders alike, and one
call's output of every few rounds is handed out after the round: what is timed is what is compared.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any

import numpy as np

from onnxproof.latency.waiting import read_waiting

# Shortest block: long against the clock and short against drift. A slow contender's single call makes it longer.
WINDOW_NS = 5_000_000
STEADY_BLOCKS = 5
# The warm-up ends when the last blocks are not faster than those before by more than this share.
STEADY_WITHIN = 0.02
WARMUP_BLOCKS = 60
# Seconds between blocks.
PAUSE = 0.002
# Idle worker threads of a contender spin for some milliseconds, on cores that the next one needs. It waits, in steps
# (longer than the system's tick, at which it counts the time of running threads), until they use less than this share
# of a core.
SETTLE_STEP, SETTLE_STEPS, SETTLED = 0.005, 6, 0.2
EMPTY_CALLS = 2000
# Share of a block's time that its threads may wait for cores: more, and it was timed on a part of the machine.
CROWDED = 0.05
# How many times its minimum of rounds a run may have in the hope of some in which nobody waits.
HOPE = 4

Clock = Callable[[], int]


@dataclass(frozen=True)
class Timed:
    """Something to time: a call without arguments, and what has to be around a block of calls."""

    name: str
    call: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    calls: int = 1
    """Model runs in one call (a burst of several workers)."""
    threads: int = 1


@dataclass(frozen=True)
class Need:
    """When enough was timed."""

    min_time: float = 1.0
    min_count: int = 64
    min_rounds: int = 16
    """Rounds that an interval needs."""
    budget: float = 60.0
    """Seconds after which it ends all the same."""


@dataclass
class Measured:
    """What one contender gave."""

    samples: list[int] = field(default_factory=list)
    total: int = 0
    """Sum of the samples."""
    blocks: list[float] = field(default_factory=list)
    """Mean nanoseconds per call of each round, without the cost of timing."""
    crowded: list[bool] = field(default_factory=list)
    """Of each round: whether its threads had to wait for cores that others had."""
    cpu: float = 0.0
    """Seconds of all cores, in the blocks."""
    per_block: int = 1
    warmup: int = 0
    steady: bool = True
    cut: bool = False


# Takes a contender's name and the raw output of one of its timed calls.
Sampled = Callable[[str, Any], None]


@contextmanager
def pause_collector() -> Iterator[None]:
    """No garbage collection meanwhile."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def run_block(call: Callable[[], Any], samples: list[int], clock: Clock) -> Any:
    """Fill the list with the times of calls; the last call's output. Nothing else happens between the two looks at the clock."""
    value = None
    for i in range(len(samples)):
        began = clock()
        value = call()
        samples[i] = clock() - began
    return value


def measure_overhead(clock: Clock = time.perf_counter_ns) -> float:
    """What timing a call costs, by timing one that does nothing."""
    samples = [0] * EMPTY_CALLS
    run_block(lambda: None, samples, clock)
    return float(np.median(samples))


def measure_resolution(clock: Clock = time.perf_counter_ns) -> float:
    """The smallest step of the clock that was seen."""
    seen = np.diff([clock() for _ in range(EMPTY_CALLS)])
    steps = seen[seen > 0]
    return float(steps.min()) if steps.size else float("inf")


@dataclass
class Harness:
    """Times some contenders against each other at one size."""

    contenders: Sequence[Timed]
    need: Need
    _: KW_ONLY
    seed: InitVar[int] = 0
    clock: Clock = time.perf_counter_ns
    sleep: Callable[[float], None] = time.sleep
    spent: Callable[[], float] = time.process_time
    waited: Callable[[], int | None] = read_waiting
    cores: Callable[[], float] = time.process_time
    """Seconds of all cores that this process has used."""
    sampled: Sampled = lambda name, value: None
    tell: Callable[[float], None] = lambda share: None

    def __post_init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._spinning = any(contender.threads > 1 for contender in self.contenders)
        self.measured = {contender.name: Measured() for contender in self.contenders}

    def run(self) -> dict[str, Measured]:
        """Warm up, then rounds until every contender has its minimum time and count."""
        self._empty = measure_overhead(self.clock)
        self._deadline = self.clock() + self.need.budget * 1e9
        typical = {contender.name: self._warm_up(contender) for contender in self.contenders}
        window = max(WINDOW_NS, *typical.values())
        for name, one in typical.items():
            self.measured[name].per_block = max(1, round(window / max(one, 1.0)))
        with pause_collector():
            rounds = 0
            while not rounds or not self._has_enough():
                self._run_round(keep=rounds & (rounds - 1) == 0)  # rounds 0, 1, 2, 4, 8 …
                rounds += 1
                self.tell(min(self._measure_share(), 1.0))
        return self.measured

    def _warm_up(self, contender: Timed) -> float:
        """Blocks until times stop falling; the typical time of a call."""
        measured = self.measured[contender.name]
        with contender.around():
            first = [0]
            run_block(contender.call, first, self.clock)
            medians = [float(first[0])]
            # A tenth of the budget for each contender, and no more than what is timed after.
            ended = self.clock() + min(0.1 * self.need.budget, max(self.need.min_time, 0.5)) * 1e9
            measured.steady = False
            while not measured.steady and len(medians) < WARMUP_BLOCKS and self.clock() < ended:
                block = [0] * max(1, min(1000, round(WINDOW_NS / max(medians[-1], 1.0))))
                run_block(contender.call, block, self.clock)
                measured.warmup += len(block)
                medians.append(float(np.median(block)))
                # Without the first call, which may compile or allocate.
                measured.steady = self._steady(medians[1:])
        return float(np.median(medians[-STEADY_BLOCKS:]))

    @staticmethod
    def _steady(medians: Sequence[float]) -> bool:
        if len(medians) < 2 * STEADY_BLOCKS:
            return False
        before, now = medians[-2 * STEADY_BLOCKS : -STEADY_BLOCKS], medians[-STEADY_BLOCKS:]
        return float(np.median(now)) >= (1 - STEADY_WITHIN) * float(np.median(before))

    def _run_round(self, *, keep: bool) -> None:
        """One block of each contender, in random order."""
        outputs = []
        for contender in self._random.sample(self.contenders, len(self.contenders)):
            measured = self.measured[contender.name]
            samples = [0] * measured.per_block
            self._settle()
            with contender.around():
                if measured.per_block > 1:
                    contender.call()  # the first call after another contender finds cold caches and sleeping threads
                waited, used = self.waited(), self.cores()
                value = run_block(contender.call, samples, self.clock)
                measured.cpu += self.cores() - used
            measured.crowded.append(_is_crowded(waited, self.waited(), sum(samples)))
            measured.samples += samples
            measured.total += sum(samples)
            measured.blocks.append(max(float(np.mean(samples)) - self._empty, 1.0) / contender.calls)
            if keep:
                outputs.append((contender.name, value))
        for name, value in outputs:
            self.sampled(name, value)

    def _settle(self) -> None:
        """Wait until the threads of the contender before have gone to sleep."""
        self.sleep(PAUSE)
        for _ in range(SETTLE_STEPS if self._spinning else 0):
            before = self.spent()
            self.sleep(SETTLE_STEP)
            if self.spent() - before < SETTLED * SETTLE_STEP:
                return

    def _measure_share(self) -> float:
        """How much of the need is met by the contender that has least."""
        need, every = self.need, self.measured.values()
        lasted = min(one.total for one in every) / max(need.min_time * 1e9, 1.0)
        count = min(len(one.samples) for one in every) / max(need.min_count, 1)
        rounds = len(next(iter(every)).blocks)
        calm = len(list_calm(list(every)))
        return min(lasted, count, max(calm, rounds / HOPE) / max(need.min_rounds, 1))

    def _has_enough(self) -> bool:
        met = self._measure_share() >= 1.0
        if met or self.clock() < self._deadline:
            return met
        for measured in self.measured.values():
            measured.cut = True
        return True


def list_calm(measured: Sequence[Measured]) -> list[int]:
    """The rounds in which every contender had the cores."""
    return [i for i in range(len(measured[0].blocks)) if not any(one.crowded[i] for one in measured if one.crowded)]


def _is_crowded(before: int | None, after: int | None, wall: int) -> bool:
    return before is not None and after is not None and after - before > CROWDED * wall
