"""What a module was asked about NaN and infinities: an output counts where a question of the module's own met one on the way to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onnxproof.cases.supply import ASKING
from onnxproof.parity.case_run import CaseRun
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.rounding import list_tensors, read_address
from onnxproof.parity.truth import Outputs
from onnxproof.tensors.arrays import Array, Arrays

# Calls that hand a tensor to Python: what the module does afterwards may follow from it.
LEAVING = frozenset("_local_scalar_dense is_nonzero item equal nonzero".split())


class _Questions:
    """Follows what was made of an answer to such a question, while the module runs."""

    def __init__(self) -> None:
        # Tensors are kept alive so that no address is used twice.
        self._alive: list[torch.Tensor] = []
        self._answers: set[int] = set()
        self.everywhere = False
        """Whether Python saw an answer: anything may follow from it."""

    def see(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Carry out an operation; what comes of an answer is one."""
        taken, name = list_tensors([args, kwargs]), func.overloadpacket.__name__
        # Before it is carried out: it may change what it takes.
        follows = any(map(self.follows, taken)) or (name in ASKING and any(map(_is_odd, taken)))
        out = func(*args, **kwargs)
        if follows:
            changed = taken[:1] if func._schema.is_mutable else []
            self._alive += [*list_tensors(out), *changed]
            self._answers.update(read_address(tensor) for tensor in (*list_tensors(out), *changed))
            self.everywhere |= name in LEAVING
        return out

    def follows(self, tensor: torch.Tensor) -> bool:
        return read_address(tensor) in self._answers


def leave_unasked(
    run: CaseRun, baseline: Outputs, candidate: Outputs, double: DoubleRunner | None
) -> tuple[CaseRun, Outputs]:
    """A case that holds NaN or infinities because the module deals with some: with what it was not asked left out, or unfair where that is all."""
    followed = follow_unasked(baseline, candidate)
    if all(name not in baseline or np.array_equal(baseline[name], one) for name, one in followed.items()):
        return run, followed
    asked = find_asked(double, run.inputs) if double is not None else None
    if asked is not None and not asked:
        return replace(run, case=replace(run.case, fair=False)), candidate
    return run, follow_unasked(baseline, candidate, asked)


def find_asked(double: DoubleRunner, inputs: Arrays) -> set[str] | None:
    """The outputs that follow from a question that NaN or infinity arrived at; None where the module's calls do not show it."""
    if not ASKING & double.called:
        return None
    questions = _Questions()
    try:
        follows = double.ask_outputs(inputs, questions.see, questions.follows)
    except Unavailable:
        return None
    return {name for name, one in follows.items() if one or questions.everywhere}


def follow_unasked(baseline: Outputs, candidate: Outputs, asked: set[str] | None = None) -> Outputs:
    """The candidate's answers but where the module has none itself: what is no number in PyTorch, and outputs that nobody asked."""
    return {
        name: _follow(baseline.get(name), array, whole=asked is not None and name not in asked)
        for name, array in candidate.items()
    }


def _follow(baseline: Array | None, candidate: Array, *, whole: bool) -> Array:
    if baseline is None or baseline.shape != candidate.shape or baseline.dtype != candidate.dtype:
        return candidate
    if whole:
        return baseline
    return np.where(np.isfinite(baseline), candidate, baseline) if baseline.dtype.kind == "f" else candidate


def _is_odd(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())
