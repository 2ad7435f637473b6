"""Pieces as the runtime computes them, each alone: as the file is served, and with every rewrite switched off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxproof.candidates.candidate import Candidate, Session
from onnxproof.errors import OnnxproofError
from onnxproof.graph.view import Graph
from onnxproof.parity.comparison import classify
from onnxproof.parity.slabs import measure_rms, measure_scale, to_float64
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Array
from onnxproof.trials.pieces import Cut, Piece

# A difference over the scale around it from which on a kernel is wrong: approximations of float32 kernels are far less.
WRONG = 1e-3
# How much more than PyTorch's float32 a kernel may lose: another order, another formula.
LOOSE = 64
# What float32 loses where values of a size cancel.
LOST = 1e-6
# The smallest normal float32: what is less is nothing.
SMALLEST = 1.2e-38


class Kernels:
    """What a runtime answers for a piece."""

    def __init__(self, path: Path, candidate: Candidate, settings: SessionSettings) -> None:
        self._path, self._candidate = path, candidate
        served = replace(settings, threads=1, spinning=False)
        self._settings = dict.fromkeys((served, replace(served, optimization="disable")))
        self.mark = hashlib.blake2b(repr(self._settings).encode(), digest_size=4).hexdigest()
        """Tells what its answers depend on besides the piece."""

    @cached_property
    def _graph(self) -> Graph:
        # Where every piece is remembered, it is never read.
        return Graph.read(self._path)

    def open(self, cut: Cut, piece: Piece) -> Alone | None:
        """Sessions of a piece alone; None where it cannot stand alone."""
        values = self._graph.values
        taken = {name for place in piece.nodes for name in cut.steps[place].takes}
        # What depends on the sizes of the recorded inputs alone is given as it was there.
        fixed = sorted(name for name in taken - cut.moving if name in cut.values and name not in cut.evaluator.stored)
        try:
            ends = [values[name] for name in (*(name for name, _ in piece.frontier), *fixed)]
            model = ir.to_proto(self._graph.piece(ends, [values[piece.value]])).SerializeToString()
            sessions = tuple(self._candidate.open(model, settings) for settings in self._settings)
        except (OnnxproofError, KeyError, ValueError):
            return None
        return Alone(sessions, {name: cut.values[name] for name in fixed})


@dataclass(frozen=True)
class Alone:
    """A piece in sessions of its own."""

    sessions: Sequence[Session]
    fixed: Mapping[str, Array]

    def answer(self, given: Mapping[str, Array]) -> Iterator[Array]:
        """What each session answers."""
        for session in self.sessions:
            try:
                [answer] = session.run({**self.fixed, **given}).values()
            except OnnxproofError:
                continue  # a size or a value that it does not take; the cases tell of those that arise
            yield answer


def find_wrong(answer: Array, true: Array, legal: Sequence[Array], usual: Array, size: float) -> int | None:
    """The flat place where a kernel is wrong, and PyTorch in the same dtype is not.

    `legal`: what PyTorch gives there, rounded in one way or another; `usual`: what the cases bring there, whose scale is the least that
    counts; `size`: of what goes in.
    """
    if any(one.shape != true.shape for one in (answer, *legal)) or not true.size:
        return None
    if true.dtype.kind != "f" or answer.dtype.kind != "f":
        wrong = np.logical_and.reduce([answer != true, *(own == true for own in legal)])
    else:
        wide = [to_float64(own) for own in legal]
        scale = measure_rms(to_float64(usual))
        wrong = np.logical_and.reduce(
            [_find_far(to_float64(answer), to_float64(true), own, scale, size) for own in wide]
        )
    places = np.flatnonzero(wrong)
    return int(places[0]) if places.size else None


@np.errstate(all="ignore")
def _find_far(answer: Array, true: Array, own: Array, usual: float, size: float) -> Array:
    odd = (classify(answer) != classify(true)) & (classify(own) == classify(true))
    finite = np.isfinite(answer) & np.isfinite(true) & np.isfinite(own)
    allowed = WRONG * np.maximum(measure_scale(true), usual) + LOOSE * np.abs(own - true) + LOST * size + SMALLEST
    far: Array = odd | (finite & (np.abs(answer - true) > allowed))
    return far
