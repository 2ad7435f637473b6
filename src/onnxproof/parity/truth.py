"""What rounding explains: the truth of a case, its legal roundings, and the exactness of the graph.

Asked in order of cost. Every case is held against the float64 truth. Only a case that looks suspicious asks for samples (the
truth with legal rounding errors injected), and only as many as it takes to explain the difference or to be sure.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from onnxproof.errors import Rejected
from onnxproof.graph.evaluator import ReferenceRunner
from onnxproof.graph.operators import IMPRECISE
from onnxproof.graph.view import Graph
from onnxproof.graph.widening import digests, nudge_constants, widen
from onnxproof.parity.comparison import (
    allowance,
    as_float64,
    credible,
    local_scale,
    measure_exactness,
    measure_noise,
    unexplained_error,
    unexplained_mismatches,
    unexplained_pattern,
    unit_roundoff,
)
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable, nudged
from onnxproof.proof.comparison import Comparison, Exactness
from onnxproof.request.request import Limits
from onnxproof.tensors.arrays import Arrays

Outputs = Mapping[str, NDArray[Any]]
SAMPLES = (3, 8, 24)
"""How many legal roundings are tried before a difference counts as unexplained."""
HOPELESS = 50.0
"""A difference this many times beyond the first samples is not explained by more of them."""
EXACT_ENOUGH = 1e-13
DOUBLE_UNIT = 2.0**-50
"""Rounding of float64 itself, with room for long sums."""
EXACTNESS_SHARE = 0.1
"""Share of the time spent on forwards that the reference evaluator may take, and seconds it always has."""
GRACE = 0.4
NUDGES = (1, 2, 3)
"""Seeds of the samples that excuse an inexact graph."""
FIRST_RUN = 10.0
"""Seconds after which one evaluation is given up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Rejected` in the main thread after some time: the evaluator's Python loops can take for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(*_: object) -> None:
        raise Rejected(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Truth:
    """The float64 truth of a subject, or the best stand-in there is."""

    def __init__(
        self, eager: EagerRunner, double: DoubleRunner | None, limits: Limits, counts: tuple[int, ...] = SAMPLES
    ) -> None:
        self.counts = counts
        self._eager = eager
        self._double = double
        self._limits = limits

    def of(self, inputs: Arrays) -> Outputs | None:
        """The outputs in float64; None where the module cannot run so."""
        with suppress(Unavailable):
            return self._double.run(inputs) if self._double is not None else None
        return None

    def judge_case(
        self,
        inputs: Arrays,
        truth: Outputs | None,
        baseline: Outputs,
        candidate: Outputs,
        comparisons: Sequence[Comparison],
    ) -> tuple[list[Comparison], Outputs | None]:
        """The comparisons with their noise, and the truth where it deserves the name."""
        samples = _Samples(self, inputs, baseline, truth)
        judged = [self._with_noise(c, baseline, candidate, samples) for c in comparisons]
        return judged, truth if samples.doubled else None

    def sample(self, inputs: Arrays, seed: int, doubled: bool) -> Outputs | None:
        """One legal rounding of the outputs."""
        with suppress(Unavailable, Rejected):
            if doubled and self._double is not None:
                return self._double.sample(inputs, seed)
            return self._eager.run(nudged(inputs, seed))
        return None

    def _with_noise(self, c: Comparison, baseline: Outputs, candidate: Outputs, samples: _Samples) -> Comparison:
        if not c.same_form or not c.size:
            return c
        b, k = baseline[c.output], candidate[c.output]
        if c.kind == "discrete":
            return _explain_discrete(c, b, k, samples)
        unit = max(unit_roundoff(b.dtype), self._double.unit if self._double is not None else 0.0)
        truth = samples.truth.get(c.output)
        if samples.doubled and truth is not None:
            c = replace(c, noise=measure_noise(b, k, truth, "float64", unit))
        elif c.compared:
            c = replace(c, noise=measure_noise(b, k, b, "ulp", unit))
        return _explain_float(c, b, k, samples, unit) if self._suspicious(c) else c

    def _suspicious(self, c: Comparison) -> bool:
        if c.pattern.differing or (c.noise is None and c.max_abs):
            return True
        if c.noise is not None and max(c.noise.ratio, c.noise.worst_ratio) > self._limits.noise:
            return True
        broken = c.excess(self._limits.atol, self._limits.rtol) > 0
        return c.max_abs is not None and (broken or c.max_abs > self._limits.max_abs)


class _Samples:
    """Legal roundings of one case, made when asked for."""

    def __init__(self, source: Truth, inputs: Arrays, baseline: Outputs, truth: Outputs | None) -> None:
        self._source = source
        self._inputs = inputs
        self._baseline = baseline
        self._made: list[Outputs] = []
        self.counts = source.counts
        self.truth = baseline if truth is None else truth
        self.doubled = truth is not None

    def take(self, count: int, output: str) -> list[NDArray[Any]]:
        """The first `count` samples of an output (fewer where the module refuses)."""
        while len(self._made) < count:
            made = self._source.sample(self._inputs, len(self._made) + 1, self.doubled)
            if made is None:
                break
            self._made.append(made)
        return [made[output] for made in self._made[:count] if output in made]

    def distrust(self) -> None:
        """The truth is none for this case (the module means something else in float64): perturb the inputs instead."""
        self.truth, self.doubled, self._made = self._baseline, False, []


def _explain_discrete(c: Comparison, b: NDArray[Any], k: NDArray[Any], samples: _Samples) -> Comparison:
    if not c.mismatched:
        return c
    left = c.mismatched
    for count in samples.counts:
        legal = [*samples.take(count, c.output), samples.truth[c.output]]
        left = unexplained_mismatches(b, k, legal)
        if not left:
            break
    return replace(c, unexplained_mismatches=left)


def _explain_float(c: Comparison, b: NDArray[Any], k: NDArray[Any], samples: _Samples, unit: float) -> Comparison:
    first = samples.take(samples.counts[0], c.output)
    truth = samples.truth[c.output]
    if samples.doubled and first and not credible(b, truth, first, unit):
        more = samples.take(samples.counts[1], c.output)
        if not credible(b, truth, more, unit):
            samples.distrust()
            truth = b
            c = replace(c, noise=measure_noise(b, k, b, "ulp", unit))
    excess, pattern = np.inf, c.pattern.differing
    for count in samples.counts:
        legal = samples.take(count, c.output)
        # The baseline is one legal rounding too, where the truth is another thing than the baseline.
        known = [*legal, b] if samples.doubled else legal
        excess = unexplained_error(b, k, truth, known, unit)
        pattern = unexplained_pattern(b, k, [*legal, truth]) if c.pattern.differing else 0
        if (excess <= 1 and not pattern) or excess > HOPELESS:
            break
    noise = replace(c.noise, unexplained=float(excess)) if c.noise is not None else None
    return replace(c, noise=noise, pattern=replace(c.pattern, unexplained=int(pattern)))


HALVES = {ir.DataType.FLOAT16: 2.0**-13, ir.DataType.BFLOAT16: 2.0**-10}
"""A quarter of the rounding of constants that were folded in half precision. A factor that rounds to one there leaves no trace in
the file: its weight is the module's own, and yet an epsilon is gone."""


def _folding_unit(graph: Graph) -> float:
    stored = (value.dtype for value in graph.main.initializers.values())
    return max((HALVES.get(dtype, 0.0) for dtype in stored if dtype is not None), default=0.0)


class GraphInFloat64:
    """The ONNX graph evaluated exactly, and what its folded constants excuse."""

    def __init__(
        self, graph: Graph, renamed: Mapping[str, str], weights: Sequence[NDArray[Any]], double: DoubleRunner
    ) -> None:
        self._double = double
        # A lossy cast in the graph counts only against a module that has none itself.
        self._wide = widen(graph.proto, keep_lossy_casts=double.unit <= 2.0**-24)
        self._renamed = dict(renamed)
        self._known = digests(weights)
        self._runner = ReferenceRunner(self._wide, renamed)
        imprecise = any(node.op_type in IMPRECISE for node in graph.nodes)
        self._unit = max(2.0**-20 if imprecise else EXACT_ENOUGH, _folding_unit(graph))
        self.spent = 0.0
        self._rate = 0.0
        """Seconds per input element of the dearest run so far."""

    def affordable(self, forwards: float, elements: int) -> bool:
        """Whether the reference evaluator has time for an input of this size, given what the forwards took so far."""
        expected = self._rate * elements
        return not self.spent or self.spent + expected <= EXACTNESS_SHARE * forwards + GRACE

    def measure(self, inputs: Arrays, truth: Outputs, outputs: Mapping[str, str]) -> dict[str, Exactness]:
        """Exactness per output of the module, where the graph gives one like it."""
        began = time.perf_counter()
        try:
            with time_limit(FIRST_RUN):
                exact = self._runner.run(inputs)
            return {
                name: self._measure_output(inputs, truth[name], exact[graph], name, graph)
                for name, graph in outputs.items()
                if name in truth and graph in exact and _measurable(truth[name], exact[graph])
            }
        finally:
            took = time.perf_counter() - began
            self.spent += took
            self._rate = max(self._rate, took / max(1, sum(array.size for array in inputs.values())))

    def _measure_output(
        self, inputs: Arrays, truth: NDArray[Any], exact: NDArray[Any], name: str, graph: str
    ) -> Exactness:
        t, e = as_float64(truth), as_float64(exact)
        scale = local_scale(t)
        result = measure_exactness(e, t, np.asarray(EXACT_ENOUGH * 100 * scale))
        samples: list[NDArray[np.float64]] = []
        # What storing constants costs, then float64's own rounding: each only where it is needed.
        for more in (
            partial(self._constant_samples, inputs, t, e, name, graph),
            partial(self._samples, inputs, name, unit=DOUBLE_UNIT),
        ):
            if result.ratio <= 1:
                break
            samples += more()
            result = measure_exactness(e, t, allowance(samples, t, scale, self._unit))
        return result

    def _constant_samples(
        self, inputs: Arrays, t: NDArray[Any], e: NDArray[Any], name: str, graph: str
    ) -> list[NDArray[np.float64]]:
        """The truth moved by what float32 storage of constants moves: in the graph, and in what the module folds itself."""
        moved = (as_float64(runner.run(inputs)[graph]) for runner in self._nudged_runners)
        return [t + (m - e) for m in moved if m.shape == e.shape] + self._samples(inputs, name, constants_only=True)

    def _samples(self, inputs: Arrays, name: str, **how: Any) -> list[NDArray[np.float64]]:
        samples: list[NDArray[np.float64]] = []
        with suppress(Unavailable):
            for seed in NUDGES:
                made = self._double.sample(inputs, seed, **how)
                if made is None:  # the module folds no constants
                    break
                samples.append(as_float64(made[name]))
        return samples

    @cached_property
    def _nudged_runners(self) -> list[ReferenceRunner]:
        models = [nudge_constants(self._wide, self._known, seed) for seed in NUDGES]
        return [ReferenceRunner(model, self._renamed) for model in models if model is not None]


def _measurable(t: NDArray[Any], e: NDArray[Any]) -> bool:
    return t.shape == e.shape and t.dtype.kind in "fc" and e.dtype.kind in "fc" and t.size > 0
