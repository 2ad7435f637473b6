"""What a piece is, whatever model it stands in: two pieces that are alike are tried once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from onnxproof.request.specs import Range
from onnxproof.tensors.arrays import Array
from onnxproof.tensors.conversion import to_numpy
from onnxproof.trials.calls import Ref
from onnxproof.trials.pieces import Cut, Piece

# Constants up to this size are limits, epsilons and shapes: their values say what a piece does.
SMALL = 16


def describe_piece(cut: Cut, piece: Piece, ranges: Mapping[str, Range]) -> str:
    """Operators with their attributes, calls with their arguments, how they hang together, what goes in, constants by their role."""
    weights = _collect_weights(cut, piece)
    parts = [
        *_describe_inputs(cut, piece, ranges),
        *_describe_nodes(cut, piece, weights),
        *_describe_calls(cut, piece, weights),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _collect_weights(cut: Cut, piece: Piece) -> list[Array]:
    """The large constants that the calls take, in their order."""
    inside = {number for place in piece.calls for number in cut.program.calls[place].gives}
    taken = (n for place in piece.calls for n in cut.program.calls[place].takes)
    given = {number for _, number in piece.frontier}
    outside = dict.fromkeys(n for n in taken if n not in inside and n not in given)
    return [to_numpy(cut.program.values[n], copy=False) for n in outside if cut.program.values[n].numel() > SMALL]


def _describe_inputs(cut: Cut, piece: Piece, ranges: Mapping[str, Range]) -> Iterator[str]:
    for name, _ in piece.frontier:
        value = cut.values[name]
        odd = tuple(size if size < 2 else -1 for size in value.shape)
        within = ranges.get(name, Range(-np.inf, np.inf))
        ends = (within.low, within.high) if value.dtype.kind in "iu" else (_round(within.low), _round(within.high))
        yield f"{value.dtype.str} {odd} {ends} {cut.is_finite(name)}"


def _round(end: float) -> str:
    """An end of a range by its sign and its power of four: what rounding or other weights move a little stays the same."""
    if end == 0 or not math.isfinite(end):
        return str(end)
    return f"{math.copysign(1.0, end):g}·4^{round(math.log2(abs(end)) / 2)}"


def _describe_nodes(cut: Cut, piece: Piece, weights: list[Array]) -> Iterator[str]:
    known = {name: f"input {place}" for place, (name, _) in enumerate(piece.frontier)}
    for place in piece.nodes:
        step = cut.steps[place]
        takes = [known.get(name) or _describe_constant(_read_constant(cut, name), weights) for name in step.takes]
        attributes = sorted(one.SerializeToString().hex() for one in step.node.attribute)
        yield f"{step.node.domain} {step.op} {attributes} {takes}"
        known.update((name, f"value {len(known)}") for name in step.gives)


def _read_constant(cut: Cut, name: str) -> Array | None:
    stored = cut.evaluator.stored.get(name)
    value = stored if stored is not None else cut.values.get(name)
    return None if value is None else np.asarray(value)


def _describe_constant(value: Array | None, weights: list[Array]) -> str:
    """A weight by which of the calls' it is; all else by its value."""
    if value is None:
        return "nothing"
    if value.size > SMALL:
        for place, weight in enumerate(weights):
            for turned in (weight, weight.T):
                if turned.shape == value.shape and np.array_equal(turned, value):
                    return f"weight {place} {'' if turned is weight else 'turned'}"
    digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    return f"{value.dtype.str} {value.shape} {digest}"


def _describe_calls(cut: Cut, piece: Piece, weights: list[Array]) -> Iterator[str]:
    known = {number: f"input {place}" for place, (_, number) in enumerate(piece.frontier)}

    def show(value: Any) -> str:
        if isinstance(value, Ref):
            constant = None if value.number in known else to_numpy(cut.program.values[value.number], copy=False)
            return known.get(value.number) or _describe_constant(constant, weights)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(show, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{name}: {show(one)}' for name, one in value.items())}}}"
        return (
            f"tensor {_describe_constant(to_numpy(value), weights)}" if isinstance(value, torch.Tensor) else repr(value)
        )

    for place in piece.calls:
        call = cut.program.calls[place]
        yield f"{call.func} {show(call.args)} {show(call.kwargs)}"
        known.update((number, f"value {len(known)}") for number in call.gives)
    yield known[piece.number]
