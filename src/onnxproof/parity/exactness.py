"""The exactness of the graph: what it means in float64, against what the module means.

An error that neither the storage of constants nor float64's own rounding excuses is a change of meaning, however small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxproof.errors import Rejected
from onnxproof.graph.evaluator import Evaluator, ReferenceRunner, widen_weights
from onnxproof.graph.operators import IMPRECISE
from onnxproof.graph.view import Graph
from onnxproof.graph.widening import digest_weights, nudge_constants, widen
from onnxproof.parity.comparison import find_digitless, find_flushed, measure_allowance, measure_exactness
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.slabs import measure_scale, to_float64
from onnxproof.parity.truth import ENOUGH, HOPELESS, Outputs, is_few
from onnxproof.parity.work import PATIENCE
from onnxproof.proof.comparison import Exactness
from onnxproof.system import alarm
from onnxproof.tensors.arrays import Array, Arrays, Floats
from onnxproof.tensors.conversion import to_numpy

# The error, over the largest element, up to which a graph is exact.
EXACT_ENOUGH = 1e-13
# Rounding of float64 itself, with room for long sums.
DOUBLE_UNIT = 2.0**-50
# Share of the work of the forwards that the reference evaluator may do, and seconds of work it always has.
EXACTNESS_SHARE = 0.04
GRACE = 0.2
# How an inexact graph is excused, step by step: the seeds of constants that are moved, and those of float64's own rounding. Among many
# elements some are hardly moved by three samples of constants, and a step (of a choice, a tie) is excused only by a rounding that takes it too.
STEPS: tuple[tuple[Sequence[int], Sequence[int]], ...] = (
    ((1,), ()),
    ((2,), ()),
    ((), (1,)),
    ((3,), ()),
    ((), (2, 3)),
    (range(4, 12), ()),
    ((), range(4, 25)),
)
# The share of the elements that constants moved both ways and one rounding leave unexplained where no more of them are asked for: a choice moves fewer.
NEARLY_ALL = 0.9
# The share of an error that float64's own rounding makes somewhere where it is one of choices.
JUMP = 0.25
# Seconds of work beyond which one evaluation is not begun.
LONGEST = 10.0
# A quarter of the rounding of constants that were folded in half precision. A factor that rounds to one there leaves
# no trace in the file: its weight is the module's own, and yet an epsilon is gone.
HALVES = {ir.DataType.FLOAT16: 2.0**-13, ir.DataType.BFLOAT16: 2.0**-10}


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise `Rejected` in the main thread after some time: the evaluator's Python loops can take for ever."""

    def expire() -> None:
        raise Rejected(f"not done within {seconds:g} s")

    with alarm(seconds, expire):
        yield


class GraphInFloat64:
    """The ONNX graph evaluated exactly, and what its folded constants excuse."""

    def __init__(self, graph: Graph, renamed: Mapping[str, str], module: torch.nn.Module, double: DoubleRunner) -> None:
        self._double = double
        # A lossy cast in the graph counts only against a module that has none itself.
        model, large = graph.separated
        self._wide = widen(model, keep_lossy_casts=double.unit <= 2.0**-24)
        self._large = widen_weights(self._wide, large)
        self._renamed = dict(renamed)
        self._module = module
        self._runner = ReferenceRunner(self._wide, renamed, self._large)
        imprecise = any(node.op_type in IMPRECISE for node in graph.nodes)
        self._unit = max(2.0**-20 if imprecise else EXACT_ENOUGH, _find_folding_unit(graph))
        self._flushed = find_flushed(np.dtype(np.float64 if double.unit < 2.0**-24 else np.float32))
        self._ledger = Ledger()
        self._nudged: dict[int, ReferenceRunner | None] = {}

    @property
    def evaluator(self) -> Evaluator:
        """What runs the graph, node by node."""
        return self._runner.evaluator

    def affords(self, ledger: Ledger, elements: int, *, free: bool = False) -> bool:
        """Whether the reference evaluator may look at an input of this size, given the work so far.

        The first look is free, and so is one at the example: without them nothing is known about the graph's exactness, and sizes
        of one, which come first, hide much (an attention over one token looks nowhere).
        """
        expected = self._double.work.evaluation(elements)
        spent, allowed = ledger.evaluated, EXACTNESS_SHARE * ledger.forwards + GRACE
        return expected <= LONGEST and (free or not spent or spent + expected <= allowed)

    def measure(
        self,
        inputs: Arrays,
        truth: Outputs,
        outputs: Mapping[str, str],
        ledger: Ledger | None = None,
        *,
        glance: bool = False,
    ) -> dict[str, Exactness]:
        """Exactness per output of the module, where the graph gives one like it. A glance takes no samples of what excuses it."""
        self._ledger = ledger or self._ledger
        exact = self._run(self._runner, inputs)
        return {
            name: self._measure_output(inputs, truth[name], exact[graph], name, graph, glance)
            for name, graph in outputs.items()
            if name in truth and graph in exact and _measurable(truth[name], exact[graph])
        }

    def _run(self, runner: ReferenceRunner, inputs: Arrays) -> Outputs:
        expected = self._double.work.evaluation(sum(array.size for array in inputs.values()))
        self._ledger.evaluated += expected
        with limit_time(PATIENCE * max(LONGEST, expected)):
            return runner.run(inputs)

    def _measure_output(
        self, inputs: Arrays, truth: Array, exact: Array, name: str, graph: str, glance: bool
    ) -> Exactness:
        t, e = to_float64(truth), to_float64(exact)
        result = measure_exactness(e, t, EXACT_ENOUGH * 100)
        if result.ratio <= 1 or glance:
            return result
        excused = self._ledger.excused.setdefault(name, [])
        if len(excused) >= ENOUGH and result.error > HOPELESS * max(excused):
            return measure_exactness(e, t, max(excused))
        stored, rounded, left = list[Floats](), list[Floats](), t.size
        scale = measure_scale(t)
        # What storing constants costs, then float64's own rounding: each only where it is needed.
        for constants, nudges in STEPS:
            stored += self._sample_constants(inputs, t, e, name, graph, constants)
            rounded += self._draw_samples(inputs, name, nudges, unit=DOUBLE_UNIT)
            # What the module's own dtype flushes is nothing, however many digits float64 has of it.
            allowed = np.maximum(measure_allowance([*stored, *rounded], t, scale, self._unit), self._flushed)
            # Where float64 itself has no digit there is no truth to be held against.
            allowed = np.where(find_digitless(rounded, t), np.inf, allowed)
            result = measure_exactness(e, t, allowed)
            if result.ratio <= 1:
                return result
            before, left = left, int((abs(e - t) > allowed).sum())
            # Not before float64's own rounding was asked: what is nothing but that is far beyond what constants move.
            asked = len(rounded) > 1 or left > NEARLY_ALL * t.size
            # Where float64's own rounding goes as far at some place, it chooses: then it may choose anywhere.
            jumps = _measure_jump(rounded, t) > JUMP * _measure_jump([e], t)
            if result.ratio > HOPELESS and rounded and asked and not jumps and not is_few(left, before, t.size):
                break
        excused.append(result.allowance)
        return result

    def _sample_constants(
        self, inputs: Arrays, t: Array, e: Array, name: str, graph: str, seeds: Sequence[int]
    ) -> list[Floats]:
        """The truth moved by what float32 storage of constants moves: in the graph, and in what the module folds itself."""
        runners = (runner for seed in seeds if (runner := self._nudge(seed)) is not None)
        moved = (to_float64(self._run(runner, inputs)[graph]) for runner in runners)
        # Only the movement is taken: the graph's own error (e − t) must not be part of what excuses it.
        return [t + (m - e) for m in moved if m.shape == e.shape] + self._draw_samples(
            inputs, name, seeds, constants_only=True
        )

    def _draw_samples(self, inputs: Arrays, name: str, seeds: Sequence[int], **how: Any) -> list[Floats]:
        samples: list[Floats] = []
        with suppress(Unavailable):
            for seed in seeds:
                made = self._double.sample(inputs, seed, **how)
                if made is None:  # the module folds no constants
                    break
                self._ledger.evaluated += self._double.work.sample(sum(array.size for array in inputs.values()))
                samples.append(to_float64(made[name]))
        return samples

    @cached_property
    def _known(self) -> set[bytes]:
        """Weights that the module has as they are."""
        held = (*self._module.parameters(), *self._module.buffers())
        return digest_weights(to_numpy(tensor, copy=False) for tensor in held)

    @cached_property
    def _derived(self) -> frozenset[str]:
        return self._large.list_derived(self._known)

    def _nudge(self, seed: int) -> ReferenceRunner | None:
        """The graph with its constants moved; None where it has none but the module's own."""
        if seed not in self._nudged:
            model, large = nudge_constants(self._wide, self._known, seed), self._large.nudged(self._derived, seed)
            moved = model is not None or self._derived
            self._nudged[seed] = ReferenceRunner(model or self._wide, self._renamed, large) if moved else None
        return self._nudged[seed]


def _measure_jump(samples: Sequence[Floats], t: Floats) -> float:
    """How far samples are from the truth at most."""
    return max(
        (float(np.abs(np.where(np.isfinite(one), one - t, 0.0)).max(initial=0.0)) for one in samples), default=0.0
    )


def _measurable(t: Array, e: Array) -> bool:
    return t.shape == e.shape and t.dtype.kind in "fc" and e.dtype.kind in "fc" and t.size > 0


def _find_folding_unit(graph: Graph) -> float:
    stored = (value.dtype for value in graph.main.initializers.values())
    return max((HALVES.get(dtype, 0.0) for dtype in stored if dtype is not None), default=0.0)
