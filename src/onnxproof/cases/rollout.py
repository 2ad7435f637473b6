"""Steps as cases: the module is rolled out with its own state, and what goes into each step is an input like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onnxproof.cases.domain import Domain, read_sizes
from onnxproof.cases.plan import Case, Inputs, make_inputs, resize_example
from onnxproof.cases.shapes import clamp_sizes, is_served, shrink_batch
from onnxproof.cases.values import fill
from onnxproof.errors import Rejected
from onnxproof.subject.state import find_growth, is_half_of
from onnxproof.tensors.arrays import Array, Arrays

Run = Callable[[Inputs], Arrays]
# Steps of a walk in the smallest chunks, and those of them that are cases.
STEPS = 12
CASES = (0, 1, 2, 5, STEPS - 1)


@dataclass(frozen=True)
class Walk:
    """Steps one after the other."""

    name: str
    warm: bool
    """Whether it begins with the example's state; else with zeros, or with the first place of a state that grows."""
    chunks: tuple[int, ...]
    """What each step takes of the dimension that is time; one where that is fixed."""


def carry(
    run: Run, drives: Sequence[Inputs], begin: Inputs, state: Mapping[str, str]
) -> Iterator[tuple[Inputs, Arrays]]:
    """The steps, each with the state that the one before it gave: what goes in and what comes out."""
    now = begin
    for drive in drives:
        fed = {**drive, **now}
        made = run(fed)
        yield fed, made
        now = {into: _widen(made[out], fed[into]) for out, into in state.items()}


def _widen(made: Array, before: Array) -> Array:
    """A state in the dtype that it was given in, where it comes back as half floats."""
    return made.astype(before.dtype) if is_half_of(before.dtype.name, made.dtype.name) else made


class Rollouts:
    """The walks of a subject that carries state."""

    def __init__(
        self,
        domains: Sequence[Domain],
        state: Mapping[str, str],
        run: Run,
        outputs: Arrays,
        *,
        batch: str | None,
        batch_sizes: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        """`state`: output → input; `run`: the module, which answers a step; `outputs`: what it answers to the example."""
        self._limits = domains[0].limits
        self.state, self._run, self._seed = dict(state), run, seed
        self._kept = [d for d in domains if d.name in state.values()]
        self._driving = [d for d in domains if d.name not in state.values()]
        self._example = read_sizes(domains, {d.name: d.example for d in domains})
        # The example's rows, unless others were asked for: what a module keeps inside may be made for them.
        rows = self._example if batch_sizes is None else shrink_batch(self._example, batch_sizes, batch or "")
        self._sizes = clamp_sizes(rows, self._limits)
        self.grows = {d.name: g for d in self._kept for g in [self._growth(d, outputs)] if g is not None}
        """State → the name of the dimension in which it grows, empty where that is fixed."""
        self._past = next(iter(self.grows.values()), None)
        self._time = self._find_time(batch)
        self._walked: dict[str, list[Inputs]] = {}

    def _growth(self, domain: Domain, outputs: Arrays) -> str | None:
        out = next(out for out, into in self.state.items() if into == domain.name)
        grown = find_growth(domain.shape, outputs[out].shape)
        return domain.dims.get(grown[0], "") if grown is not None and grown[1] else None

    def _find_time(self, batch: str | None) -> str | None:
        """The dynamic dimension that only what drives the steps has."""
        kept = {batch, *(name for d in self._kept for name in d.dims.values())}
        own = [name for d in self._driving for name in d.dims.values() if name in self._sizes and name not in kept]
        return next(iter(own), None)

    @cached_property
    def _chunks(self) -> tuple[int, int, int]:
        """What the example takes of the dimension that is time, and the two smallest chunks that the module takes."""
        own, one, two = (self._served(self._time, size) for size in (self._example.get(self._time or "", 1), 1, 2))
        takes = own == one or self._walk(Walk("the smallest chunk", False, (one,)))
        return (own, one, two) if takes else (own, own, own)

    @cached_property
    def moving(self) -> dict[str, str]:
        """What a step changes of what goes round; the rest is handed on as it came, as what an encoder said."""
        pairs = [(s[0], step) for s in map(self._walk, self.walks) for step in s[1:]]
        moves = {i for i in self.state.values() if any(not np.array_equal(a[i], b[i]) for a, b in pairs)}
        return {out: into for out, into in self.state.items() if into in moves or not pairs}

    @property
    def walks(self) -> list[Walk]:
        """The long one in the smallest chunks comes first; none where a state grows whose size is fixed."""
        own, one, two = self._chunks
        mixed = (own, one, two) if self._time is not None else (1, 1, 1)
        walks = [
            Walk(f"rollout={'zero' if self._past is None else 'short'}/steps={one}x{STEPS}", False, (one,) * STEPS),
            Walk(f"rollout=example/steps={','.join(map(str, mixed))}", True, mixed),
        ]
        return [] if "" in self.grows.values() else walks

    def _served(self, name: str | None, size: int) -> int:
        return clamp_sizes({name: size}, self._limits)[name] if name is not None else size

    def cases(self) -> list[Case]:
        """The steps that are cases, as far as the module goes."""
        if not self.state:  # what the module keeps inside cannot be fed
            return []
        planned = [(w, i) for w in self.walks for i in (range(len(w.chunks)) if w.warm else CASES)]
        return [self.name_step(walk, i) for walk, i in planned if i < len(self._walk(walk))]

    @staticmethod
    def name_step(walk: Walk, step: int) -> Case:
        """The case of a step."""
        return Case(f"{walk.name}/step={step}", {}, "rollout")

    def make(self, case: Case) -> Inputs:
        """The inputs of a step: what drives it, and the module's own state there."""
        name, _, step = case.name.rpartition("/step=")
        return self._walk(next(walk for walk in self.walks if walk.name == name))[int(step)]

    def _walk(self, walk: Walk) -> list[Inputs]:
        if walk.name not in self._walked:
            steps = self._walked.setdefault(walk.name, [])
            with suppress(Rejected):  # a state of fixed size is full
                steps += [fed for fed, _ in carry(self._run, self.drive(walk), self.begin(walk), self.state)]
        return self._walked[walk.name]

    def count(self, walk: Walk) -> int:
        """How many steps the module takes."""
        return len(self._walk(walk))

    def begin(self, walk: Walk) -> Inputs:
        """The state before the first step."""
        sizes = dict(self._sizes)
        if self._past is not None and not walk.warm:
            sizes[self._past] = self._served(self._past, 1)
        made = {d.name: resize_example(d, d.sized(sizes)) for d in self._kept}
        zero = not walk.warm and self._past is None
        return {name: np.zeros_like(array) if zero else array for name, array in made.items()}

    def drive(self, walk: Walk) -> list[Inputs]:
        """What drives each step."""
        made, done = list[Inputs](), 0
        own = self._example[self._past] if self._past is not None else 0
        for i, chunk in enumerate(walk.chunks):
            sizes = {**self._sizes, **({self._time: chunk} if self._time is not None else {})}
            if self._past is not None:
                sizes[self._past] = done + (own if walk.warm else self._served(self._past, 1))
            if not is_served(sizes, self._limits):
                break
            # How much farther it is than the example; a state of zeros has seen nothing.
            ahead = sizes[self._past] - own if self._past is not None else done if walk.warm else None
            step = make_inputs(Case(f"{walk.name}/{i}/seed={self._seed}", sizes), self._driving)
            made.append({d.name: self._timely(d, step[d.name], sizes, ahead, done) for d in self._driving})
            done += (
                chunk if self._time is not None else max((d.shape[-1] for d in self._driving if _counts(d)), default=1)
            )
        return made

    def _timely(self, domain: Domain, made: Array, sizes: Mapping[str, int], ahead: int | None, done: int) -> Array:
        """Masks and positions go on from step to step, a number such as a rate stays; anything else is drawn anew."""
        if "mask" in domain.role and domain.newest(sizes):
            whole, hidden = (
                fill(domain, name, made.shape, np.random.default_rng(0), sizes) for name in ("ones", "zeros")
            )
            # Padding on the left stays where it is; what came first of a short state is all that it has.
            if self._past is not None and sizes[self._past] - done > 1 and made.ndim > 1:
                whole[0, ..., 0] = hidden[0, ..., 0]
            return whole
        if not _counts(domain):
            return domain.example if domain.is_number else made
        first = done if ahead is None else domain.example.reshape(-1)[0] + ahead
        return np.broadcast_to(first + np.arange(made.shape[-1]), made.shape).astype(made.dtype)


def _counts(domain: Domain) -> bool:
    """Whether the example counts on: the positions of what is new."""
    if domain.dtype.kind not in "iu" or not domain.shape or not domain.example.size:
        return False
    steps = np.diff(domain.example, axis=-1)
    return bool((steps == 1).all()) and (bool(steps.size) or "position" in domain.name)
