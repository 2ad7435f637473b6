"""Operations that take a large narrow weight and give what they would give of the same weight in float64.

A large module is its own float64 copy: a weight that is widened whole goes through memory three times, and takes twice its room. Here only
what an operation looks at is widened, a block at a time, small enough to stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

# Elements from which on a weight is large.
LARGE = 1 << 20
# Elements of a block.
BLOCK = 400_000
# Rows up to which a product is bound by its weight; of more, multiplying takes longer than widening.
ROWS = 96


def compute_narrow(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """The result in float64; None where the operation is to be carried out on widened tensors as any other.

    A turned or reshaped weight stays one: only what computes with it is in float64.
    """
    carry_out = _turn if func.is_view else CARRIED_OUT.get(func)
    return carry_out(func, args, kwargs) if carry_out is not None else None


def _turn(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    turned = func(*args, **kwargs) if args and isinstance(args[0], torch.Tensor) and _is_narrow(args[0]) else None
    return turned if isinstance(turned, torch.Tensor) else None


def _look_up(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    return func(*args, **kwargs).to(torch.float64) if _is_narrow(args[0]) else None


def _multiply(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    left: torch.Tensor
    right: torch.Tensor
    left, right = args
    if kwargs or not _is_narrow(right) or left.shape[0] > ROWS:
        return None
    left = left.to(torch.float64)
    out = left.new_empty(left.shape[0], right.shape[1])
    columns = max(1, BLOCK // max(1, right.shape[0]))
    with _alone():
        for start in range(0, right.shape[1], columns):
            block = right[:, start : start + columns].to(torch.float64)
            torch.mm(left, block, out=out[:, start : start + columns])
    return out


@contextmanager
def _alone() -> Iterator[None]:
    """In one thread: a block is so small that others would wait for each other, on a busy machine for longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _multiply_and_add(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    bias, left, right = args
    product = _multiply(func, (left, right), kwargs)
    return product if product is None else product.add_(bias.to(torch.float64))


def _is_narrow(weight: torch.Tensor) -> bool:
    return weight.numel() >= LARGE and weight.dtype == torch.float32


CARRIED_OUT: dict[Any, Callable[[Any, Sequence[Any], dict[str, Any]], torch.Tensor | None]] = {
    torch.ops.aten.embedding.default: _look_up,
    torch.ops.aten.mm.default: _multiply,
    torch.ops.aten.addmm.default: _multiply_and_add,
}
