"""Random generators: whether a forward draws from them, and what it answers when the draw is a rare one.

Two runs that agree say little about a branch taken once in twenty. Where a generator was drawn from, the module is run with
the smallest and the largest number in its place: what depends on chance then shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnxproof.findings import Where
from onnxproof.findings.frames import find_running_line

# The smallest and the largest number that generators of numbers between 0 and 1 give in float32.
LOW, HIGH = 0.0, 1 - 2**-24
UNIFORM = frozenset({"aten::rand", "aten::rand_like", "aten::uniform_", "aten::uniform"})


def read_generators() -> tuple[Any, ...]:
    """What Python's, NumPy's and PyTorch's own generators will give next."""
    name, keys, position, *_ = np.random.get_state()  # the one that modules draw from without saying so
    return random.getstate(), (name, np.asarray(keys).tobytes(), position), bytes(torch.get_rng_state().numpy())


class Draws(TorchDispatchMode):
    """Watches who draws, and with a number given, what is drawn."""

    def __init__(self, forced: float | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self.seen: list[tuple[str, Where]] = []
        self.forced = forced

    def note(self, name: str) -> None:
        """Remember who draws."""
        self.seen.append((name, find_running_line()))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        drawn = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.note(str(func))
            if self.forced is not None and func._schema.name in UNIFORM and drawn.is_floating_point():
                drawn.fill_(self.forced)
        return drawn


@contextmanager
def watch_draws(forced: float | None = None) -> Iterator[Draws]:
    """Every draw of the block is seen; with a number given, uniform draws give it."""
    watch = Draws(forced)
    with ExitStack() as replaced, watch:
        for owner, name in ((owner, name) for owner, names in SOURCES for name in names):
            replaced.enter_context(patch.object(owner, name, _wrap_draw(watch, owner, name)))
        yield watch


SOURCES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (random, ("random", "uniform", "randint", "randrange", "choice", "gauss", "normalvariate", "shuffle", "sample")),
    (np.random, ("rand", "random", "random_sample", "uniform", "randint", "randn", "normal", "choice", "permutation")),
)


def _wrap_draw(watch: Draws, owner: Any, name: str) -> Callable[..., Any]:
    """A function of a generator that says so when it is called."""
    function = getattr(owner, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        watch.note(f"{owner.__name__}.{name}")
        drawn = function(*args, **kwargs)
        if watch.forced is None:
            return drawn
        if name == "uniform":
            low, high = (*args, *(kwargs[key] for key in ("low", "high") if key in kwargs), 0.0, 1.0)[:2]
            # Times 0, to keep the shape and dtype of what was drawn.
            return drawn * 0 + low + (high - low) * watch.forced
        return drawn * 0 + watch.forced if name in ("random", "rand", "random_sample") else drawn

    return draw
