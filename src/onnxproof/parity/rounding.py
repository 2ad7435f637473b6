"""Legal roundings: after every operation, an error as large as a correct kernel of the module's dtype may make it.

Run several times with random signs, this shows where legal implementations of the same model may end up: amplified where the
model is ill-conditioned, flipped where a decision is close.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from onnxproof.parity.amplitudes import (
    Amplitude,
    Operation,
    Rule,
    find_rule,
    lose_beside,
    lose_in_products,
    lose_in_sums,
    lose_relatively,
)

# IEEE operations: where the exact result is a number of the narrow dtype, every kernel gives that number. Ties stay ties.
CORRECTLY_ROUNDED = frozenset("add add_ sub sub_ rsub mul mul_ div div_ sqrt reciprocal".split())


# Operations that put values in order and promise none among equal ones, unless they are told to be stable.
ORDERING = frozenset("sort topk argsort".split())


# Operations that ask whether two numbers are one: in the narrow dtype they may be, in a wide one with an error they never are.
EQUATING = frozenset("eq ne".split())
# Units of u within which a kernel may have made them one.
NEAR = 8.0
FLOAT32_MAX = float(np.finfo(np.float32).max)
# Samples without any error but that of the dtype itself: values that it makes equal (saturated, or too near) stay equal; with errors they
# never are, and which of many equal ones is first no few samples tell. PyTorch's own order among them, and the first one first.
OWN, FIRST = 4, 5
# A sample in which what differs by less than a kernel may lose is the same, and what is nothing but that is nothing.
TIED = 6


# Operations that weigh by coordinates which depend on sizes alone: exporters fold them, in the narrow dtype.
FOLDED = frozenset("upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d".split())
FOLDED |= {"_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"}


# Operations that are a root of squares: in a kernel that keeps these in the narrow dtype tiny ones vanish, in PyTorch's they do not.
SQUARING = frozenset("std std_mean".split())


@dataclass(frozen=True)
class _Kind:
    """What is known of an operation before it is called."""

    rule: Rule | None
    in_place: bool
    ieee: bool
    orders: bool
    equates: bool
    folded: bool


@cache
def _find_kind(func: Any) -> _Kind:
    name = func.overloadpacket.__name__
    rule = find_rule(func)
    in_place = rule is not None and func._schema.is_mutable
    return _Kind(rule, in_place, name in CORRECTLY_ROUNDED, name in ORDERING, name in EQUATING, name in FOLDED)


class Injector:
    """Calls operations and adds a legal rounding error to what they give.

    With `tainted` inputs, only results that do not depend on them are changed, and what is weighed by such: the constants that an exporter folds.
    """

    def __init__(
        self, unit: float, narrow: torch.dtype, seed: int, tainted: Sequence[torch.Tensor] | None = None
    ) -> None:
        self._unit = unit
        self._narrow = narrow
        self._largest = torch.finfo(narrow).max
        self._seed = seed
        # Of an error that is smaller than the dtype's own these are no samples.
        self._correct = tainted is None and seed in (OWN, FIRST) and unit >= torch.finfo(narrow).eps / 2
        self._generator = torch.Generator().manual_seed(seed)
        # Tensors are kept alive so that no address is used twice.
        self._alive = list(tainted) if tainted is not None else None
        self._tainted = {read_address(t) for t in tainted or ()}
        self.injected = 0

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run the operation and round."""
        kind = _find_kind(func)
        if self._alive is not None and self._depends(args, kwargs):
            args, kwargs = self._store(args), {name: self._store(value) for name, value in kwargs.items()}
            out = func(*args, **kwargs)
            if kind.folded and _rounds(out):
                out = self._round(kind, Operation(func, args, kwargs, out))
            self._taint(out)
            return out
        if kind.orders:
            return self._call_shuffled(func, args, kwargs)
        if kind.equates and _rounds(args[0]) and not args[0].is_complex():
            equal = self._are_equal(*args)
            return equal if func.overloadpacket.__name__ == "eq" else ~equal
        if kind.rule is None:
            return func(*args, **kwargs)
        if kind.in_place:
            return self._call_in_place(kind, func, args, kwargs)
        out = func(*args, **kwargs)
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if not _rounds(first):
            return out
        total = self._round(kind, Operation(func, args, kwargs, first))
        if first is out:
            return total
        beside = replace(kind, rule=lose_beside)
        further = [self._round(beside, Operation(func, args, kwargs, o)) if _rounds(o) else o for o in out[1:]]
        return type(out)([total, *further])

    def _store(self, value: Any) -> Any:
        """A number that is written in the module as both sides have it: kernels compute in float32, also those of narrower dtypes."""
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._store, value))
        if not isinstance(value, float) or self._narrow == torch.float64:
            return value
        stored = float(np.float32(value)) if abs(value) <= FLOAT32_MAX else value
        self.injected += stored != value
        return stored

    def _are_equal(self, left: torch.Tensor, right: Any) -> torch.Tensor:
        """As numbers of the narrow dtype; those that an operation has rounded also, every other time, where they are near."""
        right = torch.as_tensor(right, dtype=left.dtype)
        one, other = left.to(self._narrow), right.to(self._narrow)
        if self._seed % 2:
            return one == other
        near = (left - right).abs() <= NEAR * self._unit * torch.maximum(left.abs(), right.abs())
        return (one == other) | (near & ((left != one) | (right != other)))

    def _call_shuffled(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Equal values come in the order that a kernel likes: any, or the last first."""
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        source, dim = args[0], given.get("dim", -1)
        if given.get("stable") or not source.ndim:
            return func(*args, **kwargs)
        size, shape = source.shape[dim], [1] * source.ndim
        shape[dim] = size
        # Kernels of torch are not stable themselves: places among equal ones become part of the number.
        shuffled = torch.randperm(size, generator=self._generator)
        # Both directions at least: of two equal values each is first in one of them.
        among = {0: torch.arange(size), 1: torch.arange(size).flip(0)}.get(self._seed % 4, shuffled)
        # What underflows in the narrow dtype is equal there, and to kernels that flush what nearly does; NaN are equal to a sort.
        seen = source.to(self._narrow) if source.is_floating_point() else source
        ranks = torch.unique(self._flush(seen), return_inverse=True)[1]
        ranks = torch.where(seen.isnan(), seen.numel(), ranks) if seen.is_floating_point() else ranks
        keys = ranks * size + among.reshape(shape)
        keys = seen if self._correct and self._seed == OWN else keys
        out = func(keys, *args[1:], **kwargs)
        return out if isinstance(out, torch.Tensor) else type(out)([source.gather(dim, out[1]), out[1]])

    def _flush(self, seen: torch.Tensor) -> torch.Tensor:
        """In both directions of order: without the numbers that are not normal in the narrow dtype."""
        if not seen.is_floating_point() or self._seed % 4 > 1:
            return seen
        return torch.where(seen.abs() < torch.finfo(seen.dtype).tiny, 0.0, seen)

    def _call_in_place(self, kind: _Kind, func: Any, args: Any, kwargs: Any) -> Any:
        # The rules ask for the arguments as they were before the operation overwrites the first.
        saved = [tensor.clone() for tensor in list_tensors(args[:1])]
        out = func(*args, **kwargs)
        if not _rounds(out):
            return out
        op = Operation(func, (*saved, *args[1:]) if saved else args, kwargs, out, torch.float64)
        return out.copy_(self._round(kind, op))

    def _round(self, kind: _Kind, op: Operation) -> torch.Tensor:
        """The result with an error; where the error or the result leaves the numbers, once more and with care."""
        if self._correct and not op.out.is_complex():
            rounded = op.out.to(self._narrow)
            if op.name in SQUARING and self._seed == FIRST:
                rounded = torch.where(op.out.square().to(self._narrow) == 0, 0.0, rounded)
            return rounded.to(op.out.dtype)
        if self._seed == TIED and self._alive is None and not op.out.is_complex():
            return self._tie(kind, op)
        error = self._draw_error(kind, op)
        if error is None:
            return op.out
        total = torch.add(op.out, error, alpha=self._unit)
        if not total.is_complex():
            # The usual case needs no more passes. NaN fails both comparisons and takes the careful way too.
            low, high = torch.aminmax(total)
            if low >= -self._largest and high <= self._largest:
                return total
        # Magnitudes in float32 overflow where the float64 result does not.
        error = self._draw_error(kind, replace(op, sizes=torch.float64))
        assert error is not None  # the rule has given one before
        error = torch.where(torch.isfinite(op.out.abs()), error, 0.0).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        total = torch.add(op.out, error, alpha=self._unit)
        if total.is_complex():
            return total
        beyond = torch.sign(total) * math.inf
        if kind.rule in (lose_in_products, lose_in_sums):
            # Partial sums of both signs may overflow before they meet, and infinities that meet are no number.
            meets = torch.rand(total.shape, generator=self._generator, dtype=torch.float64) < 0.5
            beyond = torch.where(meets, math.nan, beyond)
        return torch.where(total.abs() > self._largest, beyond, total)

    def _tie(self, kind: _Kind, op: Operation) -> torch.Tensor:
        """The result in steps of what may be lost of it."""
        amplitude = self._find_amplitude(kind, op)
        if amplitude is None:
            return op.out
        step = torch.exp2(torch.ceil(torch.log2(amplitude.to(op.out.dtype) * self._unit)))
        tied = torch.round(op.out / step) * step
        tied = torch.where(torch.isfinite(tied) & (step > 0), tied, op.out)
        # What is denormal in the narrow dtype kernels may take for nothing.
        return torch.where(op.out.abs() < torch.finfo(self._narrow).tiny, 0.0, tied)

    def _find_amplitude(self, kind: _Kind, op: Operation) -> Amplitude:
        """What may be lost, in units of u."""
        assert kind.rule is not None
        try:
            amplitude = kind.rule(op)
        except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
            amplitude = lose_relatively(op)  # an unusual overload: fall back to a plain relative error
        if amplitude is not None:
            self.injected += 1
            if kind.ieee:
                amplitude = torch.where(op.out == op.out.to(self._narrow), 0.0, amplitude)
        return amplitude

    def _draw_error(self, kind: _Kind, op: Operation) -> torch.Tensor | None:
        """In units of u."""
        amplitude = self._find_amplitude(kind, op)
        if amplitude is None:
            return None
        # Constant rows round alike: half of the error is common to the whole tensor.
        common = float(torch.rand((), generator=self._generator, dtype=torch.float64)) * 2 - 1
        signs = torch.empty(op.out.shape, dtype=op.sizes).uniform_(common - 1, common + 1, generator=self._generator)
        return signs * amplitude

    def _depends(self, args: Any, kwargs: Any) -> bool:
        return any(read_address(t) in self._tainted for t in list_tensors([args, kwargs]))

    def _taint(self, out: Any) -> None:
        assert self._alive is not None
        for tensor in list_tensors([out]):
            self._alive.append(tensor)
            self._tainted.add(read_address(tensor))


def _rounds(out: Any) -> bool:
    return isinstance(out, torch.Tensor) and (out.is_floating_point() or out.is_complex()) and out.numel() > 0


def read_address(tensor: torch.Tensor) -> int:
    """What tells a tensor and its views from others, as long as one of them lives."""
    # The storage, so that views are known as well; not its data, whose address is 0 for every empty tensor.
    return int(tensor.untyped_storage()._cdata)


def list_tensors(values: Any) -> list[torch.Tensor]:
    """All of them, however deep."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
