"""Operations that take a large narrow weight and give what they would give of the same weight in float64.

A large module is its own float64 copy: a weight that is widened whole goes through memory three times, and takes twice its room. Here only
what an operation looks at is widened, a block at a time, small enough to stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

# Elements from which on a weight is large.
LARGE = 1 << 20
# Elements of a block.
BLOCK = 400_000
# Rows up to which a product is bound by its weight; of more, multiplying takes longer than widening.
ROWS = 96


class Narrow:
    """An operation as it is called, and what is known of it, on a weight that stays as it is."""

    def __init__(self, func: Any, carry_out: Callable[..., torch.Tensor]) -> None:
        self._func, self._carry_out = func, carry_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._func, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Who asks for magnitudes asks in float32.
        wide = any(isinstance(a, torch.Tensor) and a.dtype == torch.float64 for a in args)
        return self._carry_out(*args) if wide or self._carry_out is _look_up else self._func(*args, **kwargs)


def take_narrow(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What carries an operation out on a large weight as it is; None where its tensors are to be widened as any other's.

    A turned or reshaped weight stays one: only what computes with it is in float64.
    """
    if func.is_view:
        return func if args and _is_narrow(args[0]) else None
    place, _ = KNOWN.get(func, (-1, None))
    if place < 0 or kwargs or not _is_narrow(args[place]):
        return None
    left = args[place - 1]
    if place and (left.dtype != torch.float64 or left.shape[0] > ROWS):
        return None
    return _make(func)


@cache
def _make(func: Any) -> Narrow:
    return Narrow(func, KNOWN[func][1])


def _look_up(table: torch.Tensor, places: torch.Tensor, *how: Any) -> torch.Tensor:
    found: torch.Tensor = torch.ops.aten.embedding.default(table, places, *how)
    return found.to(torch.float64)


def _multiply(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    out = left.new_empty(left.shape[0], right.shape[1])
    columns = max(1, BLOCK // max(1, right.shape[0]))
    with _alone():
        for start in range(0, right.shape[1], columns):
            block = right[:, start : start + columns].to(torch.float64)
            torch.mm(left, block, out=out[:, start : start + columns])
    return out


def _multiply_and_add(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return _multiply(left, right).add_(bias.to(torch.float64))


@contextmanager
def _alone() -> Iterator[None]:
    """In one thread: a block is so small that others would wait for each other, on a busy machine for longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _is_narrow(weight: Any) -> bool:
    return isinstance(weight, torch.Tensor) and weight.numel() >= LARGE and weight.dtype == torch.float32


# Operation → the place of the weight among its arguments, and what carries it out.
KNOWN: dict[Any, tuple[int, Callable[..., torch.Tensor]]] = {
    torch.ops.aten.embedding.default: (0, _look_up),
    torch.ops.aten.mm.default: (1, _multiply),
    torch.ops.aten.addmm.default: (2, _multiply_and_add),
}
