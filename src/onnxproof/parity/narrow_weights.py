"""Operations that take a large narrow weight and give what they would give of the same weight in float64.

A large module is its own float64 copy: only what an operation looks at is widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from onnxproof.tensors.products import LARGE, multiply_widened

# Rows up to which a product is bound by its weight; of more, multiplying takes longer than widening.
ROWS = 384


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


def _multiply_and_add(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return multiply_widened(left, right).add_(bias.to(torch.float64))


def _is_narrow(weight: Any) -> bool:
    return isinstance(weight, torch.Tensor) and weight.numel() >= LARGE and weight.dtype == torch.float32


# Operation → the place of the weight among its arguments, and what carries it out.
KNOWN: dict[Any, tuple[int, Callable[..., torch.Tensor]]] = {
    torch.ops.aten.embedding.default: (0, _look_up),
    torch.ops.aten.mm.default: (1, multiply_widened),
    torch.ops.aten.addmm.default: (2, _multiply_and_add),
}
