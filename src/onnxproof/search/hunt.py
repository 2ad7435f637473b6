"""The hunt: within a budget, look for an input on which the two sides part.

Several moves take turns: mixtures of value profiles, sizes, every id of a table, one extreme feature at a time, regimes that no
input has reached yet (by gradient where the module is differentiable, by evolution where not), and climbing from the inputs on
which the error came nearest to what rounding cannot explain. The order depends on the seed alone, and the work ends it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.plan import Inputs
from onnxproof.cases.supply import Supply
from onnxproof.parity.work import PATIENCE, UNKNOWN, Work
from onnxproof.proof.search import Search
from onnxproof.search.goals import Coverage
from onnxproof.search.guide import Guide
from onnxproof.search.mutate import FAIR, bound, mix, mutate, repeat
from onnxproof.search.sweeps import Sweeps

ARCHIVE = 8
TRIES = 12
STEPS = 24
# How many times a case an attempt costs, and seconds besides: it is written down, judged and looked into.
ATTEMPTED, JUDGED = 2.5, 8e-3
# The same of a look at the deciding values of one side, or at where they lead.
LOOKED, ASKED = 0.5, 1e-3
# Share of the time in which the search goes on after something to be reviewed.
AFTERWARDS = 0.2


@dataclass(frozen=True)
class Trial:
    """What an input showed: how near it came to failing (1 is the border), the worst row, and how gravely it failed."""

    score: float
    row: int = 0
    fails: int = 0
    """0 not at all, 1 to be reviewed, 2 blocking."""


@dataclass(frozen=True)
class Find:
    """A failing input and the move that led to it."""

    name: str
    inputs: Inputs
    fails: int


class Hunt:
    """One search."""

    def __init__(
        self, supply: Supply, guide: Guide, attempt: Callable[[str, Inputs], Trial], seed: int = 0, work: Work = UNKNOWN
    ) -> None:
        self._supply = supply
        self._work, self._spent, self._budget = work, 0.0, math.inf
        self._domains = supply.domains
        self._guide = guide
        self._attempt = attempt
        # numpy takes no negative seeds.
        self._seed = seed % 2**32
        self._batch = supply.subject.batch
        self._sweeps = Sweeps(supply)
        self._sizes = self._sweeps.population
        self._coverage = Coverage()
        self._starts: dict[str, Inputs] = {}
        """The input that came nearest to a goal."""
        self._tries: dict[str, int] = {}
        self._archive: list[tuple[float, Inputs]] = []
        self.outcome, self.cut = Search(0.0), False
        """What came of it, and whether the clock ended it before its work was done."""

    def _make_generator(self, *numbers: int) -> np.random.Generator:
        # A generator for each try: what one move draws does not change what another finds.
        return np.random.default_rng([self._seed, *numbers])

    def _mix(self, g: np.random.Generator) -> Inputs:
        return mix(self._domains, self._sizes, self._batch, g)

    def run(
        self, seconds: float, tell: Callable[[Search, Find | None], None] = lambda outcome, find: None
    ) -> Find | None:
        """Search until something fails gravely, the time is over or there is nothing left to try.

        After something that is to be reviewed only, the search goes on for a while: the same fault may show more gravely.
        """
        began, self._spent, self._budget = time.perf_counter(), 0.0, seconds
        self.outcome = Search(seconds)
        best: Find | None = None
        moves: dict[str, Iterator[Inputs]] = {
            "mixture": self._try_mixtures(),
            "regime": self._try_regimes(),
            "size": self._try_wide_sizes(),
            "id": self._sweeps.ids(self._make_generator),
            "feature": self._try_features(),
            "climb": self._climb(),
        }
        while moves and self._spent < self._budget:
            self.cut = time.perf_counter() - began > PATIENCE * seconds
            if self.cut:
                break
            for move in list(moves):
                inputs = next(moves[move], None)
                if inputs is None:
                    del moves[move]
                    continue
                find = self._take(move, inputs)
                self.outcome = replace(self.outcome, seconds=time.perf_counter() - began)
                news = find if find is not None and (best is None or find.fails > best.fails) else None
                if news is not None:
                    best, self.outcome = news, replace(self.outcome, found=news.name)
                    self._budget = min(self._budget, self._spent + AFTERWARDS * self._budget)
                tell(self.outcome, news)
                if (best is not None and best.fails > 1) or self._spent >= self._budget:
                    return best
        return best

    def _take(self, move: str, inputs: Inputs) -> Find | None:
        """Run one input on both sides, and learn from it."""
        done = self.outcome
        moves = {**done.moves, move: done.moves.get(move, 0) + 1}
        name = f"search/{move}/{moves[move]}"
        rows = next((a.shape[0] for a in inputs.values() if a.ndim), 1)
        trial = self._attempt(name, inputs)
        self._spend(inputs, ATTEMPTED, JUDGED)
        self._learn(inputs)
        self._remember(trial, inputs)
        self.outcome = replace(
            done,
            inputs=done.inputs + 1,
            rows=done.rows + rows,
            regimes=len(self._coverage.best),
            reached=self._coverage.reached,
            worst=max(done.worst, trial.score),
            moves=moves,
        )
        return Find(name, inputs, trial.fails) if trial.fails else None

    def _spend(self, inputs: Inputs, cases: float, besides: float) -> None:
        self._spent += cases * self._work.case(sum(array.size for array in inputs.values())) + besides

    def _learn(self, inputs: Inputs) -> None:
        seen = self._guide.observe(inputs)
        for goal, number in seen.items():
            if self._coverage.best.get(goal, -np.inf) < number <= 0:
                self._starts[goal] = inputs
        for goal in self._coverage.add(seen):
            self._starts.pop(goal, None)

    def _remember(self, trial: Trial, inputs: Inputs) -> None:
        if len(self._archive) < ARCHIVE or trial.score > self._archive[-1][0]:
            best = repeat(inputs, self._domains, self._batch, trial.row)
            self._archive.append((trial.score, best))
            self._archive.sort(key=lambda one: -one[0])
            del self._archive[ARCHIVE:]

    def _try_mixtures(self) -> Iterator[Inputs]:
        for i in count(1):
            yield self._mix(self._make_generator(1, i))

    def _try_wide_sizes(self) -> Iterator[Inputs]:
        for i, sizes in enumerate(self._sweeps.sizes()):
            yield mix(self._domains, sizes, self._batch, self._make_generator(2, i))

    def _try_features(self) -> Iterator[Inputs]:
        """One extreme feature at a time in an ordinary row."""
        sized = [d for d in self._domains if d.is_float and d.dtype.kind == "f" and d.shape]
        floats = [d for d in sized if 0 not in d.sized(self._sizes)]
        for i in count(1) if floats else ():
            g = self._make_generator(4, i)
            domain = floats[i % len(floats)]
            inputs = self._mix(g)
            array = bound(domain, g.standard_normal(inputs[domain.name].shape))
            rows = array.reshape(len(array), -1) if array.ndim and self._batch else array.reshape(1, -1)
            valid = domain.valid or FAIR
            ends = np.array([end / part for part in (1, 10, 100) for end in (valid.low, valid.high)] + [0.0])
            places = (i // len(floats) * len(rows) + np.arange(len(rows))) % rows.shape[1]
            rows[np.arange(len(rows)), places] = g.choice(np.clip(ends, valid.low, valid.high), len(rows))
            inputs[domain.name] = rows.reshape(array.shape)
            yield inputs

    def _climb(self) -> Iterator[Inputs]:
        for i in count(1):
            g = self._make_generator(5, i)
            if self._archive:
                yield mutate(self._archive[int(g.integers(len(self._archive)))][1], self._domains, g)
            else:
                yield self._mix(g)

    def _try_regimes(self) -> Iterator[Inputs]:
        """Inputs that reach what no input has reached, and inputs right at the border."""
        for i in count():
            goals = [goal for goal in self._coverage.missing() if self._tries.get(goal, 0) < TRIES]
            if not goals:
                # A move that ends is not asked again, and goals may still turn up.
                yield self._mix(self._make_generator(6, i))
                continue
            goal = min(goals, key=lambda one: (self._tries.get(one, 0), one))
            self._tries[goal] = self._tries.get(goal, 0) + 1
            yield from self._reach(goal, self._make_generator(7, i + 1))

    def _reach(self, goal: str, g: np.random.Generator) -> Iterator[Inputs]:
        start = self._starts.get(goal)
        if start is None or self._tries[goal] % 2 == 0:
            start = self._mix(g)
        before, after = self._ascend(goal, start, g)
        if after is None:
            yield before
            return
        yield after
        low, high = self._find_border(goal, before, after)
        for share in (low, high, 3.0):
            yield self._interpolate(before, after, share)

    def _ascend(self, goal: str, start: Inputs, g: np.random.Generator) -> tuple[Inputs, Inputs | None]:
        """The last input before the goal and the first one that reaches it (None: not reached)."""
        here, number, step = start, self._measure_goal(start, goal), 1.0
        for _ in range(STEPS):
            if self._spent >= self._budget:
                break
            slope = self._find_slope(here, goal)
            trial = self._take_step(here, slope, step) if slope else mutate(here, self._domains, g)
            reached = self._measure_goal(trial, goal)
            if reached > 0:
                return here, trial
            if reached > number:
                here, number, step = trial, reached, step * 2
            else:
                step = step / 4 if step > 1e-3 else 8.0
        return here, None

    def _measure_goal(self, inputs: Inputs, goal: str) -> float:
        self._spend(inputs, LOOKED, ASKED)
        return self._guide.number(inputs, goal)

    def _find_slope(self, inputs: Inputs, goal: str) -> dict[str, NDArray[np.float64]] | None:
        self._spend(inputs, LOOKED, ASKED)
        return self._guide.slope(inputs, goal)

    def _take_step(self, inputs: Inputs, slope: dict[str, NDArray[np.float64]], step: float) -> Inputs:
        moved = dict(inputs)
        for domain in self._domains:
            gradient = slope.get(domain.name)
            if gradient is None or not domain.is_float or not np.isfinite(gradient).all():
                continue
            # Every row takes a step of the same length, whatever its slope.
            rows = gradient.reshape(len(gradient), -1) if gradient.ndim and gradient.size else gradient.reshape(1, -1)
            largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
            unit = (rows / np.where(largest > 0, largest, 1.0)).reshape(gradient.shape)
            moved[domain.name] = bound(domain, inputs[domain.name].astype(np.float64) + step * unit)
        return moved

    def _interpolate(self, a: Inputs, b: Inputs, share: float) -> Inputs:
        """On the line from one input to the other (or beyond), for the floats."""
        mixed = dict(b)
        for domain in self._domains:
            if domain.is_float and b[domain.name].dtype.kind == "f" and a[domain.name].shape == b[domain.name].shape:
                start, end = a[domain.name].astype(np.float64), b[domain.name].astype(np.float64)
                mixed[domain.name] = bound(domain, start + share * (end - start))
        return mixed

    def _find_border(self, goal: str, before: Inputs, after: Inputs) -> tuple[float, float]:
        """The two sides of the place between them where the goal is reached, as near as the dtype allows."""
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            if self._measure_goal(self._interpolate(before, after, middle), goal) > 0:
                high = middle
            else:
                low = middle
        return low, high
