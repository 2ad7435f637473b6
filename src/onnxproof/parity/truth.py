"""What rounding explains: the truth of a case and its legal roundings.

Asked in order of cost. Every case is held against the float64 truth. Only a case that looks suspicious asks for samples (the
truth with legal rounding errors injected), and only as many as it takes to explain the difference or to be sure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from onnxproof.errors import Rejected
from onnxproof.parity.comparison import (
    count_unexplained_mismatches,
    count_unexplained_pattern,
    find_roundoff,
    is_credible,
    measure_excess,
    measure_noise,
)
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable, nudge_inputs
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.rounding import TIED
from onnxproof.proof.comparison import Comparison
from onnxproof.request.request import Limits
from onnxproof.tensors.arrays import Array, Arrays

Outputs = Mapping[str, Array]
# Seed, and whether the float64 copy can be asked → one legal rounding of a case.
Sample = Callable[[int, bool], Outputs | None]
# The truth, where there is one → roundings that are farther from it.
WideSamples = Callable[[Outputs | None], Iterator[Outputs]]
# How many legal roundings are tried before a difference counts as unexplained.
SAMPLES = (3, 8, 24)
# A difference this many times beyond the first samples is not explained by more of them.
HOPELESS = 50.0
# Unless so few of the elements are: a step (of a rounding, a comparison) is far beyond until a sample takes it too.
FEW = 0.002
# Or so many of those that were left have been explained by the last ones: signs of nothing are flipped by every second sample.
FALLING = 0.25
# Times the farthest legal rounding that an element may be from the truth.
FARTHEST = 4.0
# Kinds of trouble: beyond the noise, and beyond the contract.
NOISY, BROKEN = "noise", "broken"
# What is kept of an output of which the graph means something else than the module.
CHANGED = "changed"
# Cases in which an output was wrong beyond any rounding: after them further ones need their numbers, and no samples.
ENOUGH = 2


@dataclass(frozen=True)
class Effort:
    """How closely cases are looked at."""

    samples: tuple[int, ...] = SAMPLES
    """Legal roundings after which a difference that is still there counts as unexplained."""
    settles: bool = True
    """Whether an output that was wrong in enough cases is asked no more questions."""
    unhurried: bool = False
    """Whether the reference evaluator looks at every case, whatever that costs."""


# What a planned case gets.
PLANNED = Effort()


class Truth:
    """The float64 truth of a subject, or the best stand-in there is."""

    def __init__(
        self,
        eager: EagerRunner,
        double: DoubleRunner | None,
        limits: Limits,
        effort: Effort = PLANNED,
        ledger: Ledger | None = None,
    ) -> None:
        self.effort = effort
        self._eager = eager
        self._double = double
        self._limits = limits
        self._ledger = ledger or Ledger()

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
        group: str = "",
        *,
        glance: bool = False,
        sample: Sample | None = None,
        spared: Collection[str] = (),
    ) -> tuple[list[Comparison], Outputs | None]:
        """The comparisons with their noise, and the truth where it deserves the name.

        Cases of one `group` weigh alike: what some of them showed of an output the others need not show again. A glance takes no
        samples: whether rounding explains a difference stays open. `sample` has the legal roundings where they are there already; `spared`
        outputs need none: it is known that no rounding explains them.
        """
        wide = partial(self.wide_samples, inputs)
        samples = _Samples(sample or partial(self.sample, inputs), wide, self.effort.samples, baseline, truth)
        judged = [self._attach_noise(c, baseline, candidate, samples) for c in comparisons]
        if not glance:
            judged = [
                c if c.output in spared and self._noisy(c) else self._explain(c, baseline, candidate, samples, group)
                for c in judged
            ]
        return judged, truth if samples.doubled else None

    def sample(self, inputs: Arrays, seed: int, doubled: bool) -> Outputs | None:
        """One legal rounding of the outputs."""
        with suppress(Unavailable, Rejected):
            if doubled and self._double is not None:
                return self._double.sample(inputs, seed)
            return self._eager.run(nudge_inputs(inputs, seed))
        return None

    def wide_samples(self, inputs: Arrays, truth: Outputs | None) -> Iterator[Outputs]:
        """The truth, and roundings as far from it as allowances reach: what lies at a border may be on either side of it."""
        if truth is not None:
            yield truth
        double = self._double if truth is not None else None
        for seed in range(1, self.effort.samples[-1] + 1):
            with suppress(Unavailable, Rejected):
                sampled = None if double is None else double.sample(inputs, seed, unit=FARTHEST * double.unit)
                yield sampled or self._eager.run(nudge_inputs(inputs, seed))

    def _attach_noise(self, c: Comparison, baseline: Outputs, candidate: Outputs, samples: _Samples) -> Comparison:
        if not c.same_form or not c.size or c.kind == "discrete":
            return c
        b, k, truth = baseline[c.output], candidate[c.output], samples.truth.get(c.output)
        if samples.doubled and truth is not None:
            return replace(c, noise=measure_noise(b, k, truth, "float64", self._find_unit(b)))
        return replace(c, noise=measure_noise(b, k, b, "ulp", self._find_unit(b))) if c.compared else c

    def _find_unit(self, b: Array) -> float:
        # A module that computes in half precision inside rounds so, whatever the dtype of its output.
        return max(find_roundoff(b.dtype), self._double.unit if self._double is not None else 0.0)

    def _explain(
        self, c: Comparison, baseline: Outputs, candidate: Outputs, samples: _Samples, group: str
    ) -> Comparison:
        """What legal roundings explain of a suspicious difference."""
        if not c.same_form or not c.size or not self._suspicious(c):
            return c
        # What was shown about NaN says nothing about noise: each kind of trouble is settled by itself.
        trouble = "pattern" if c.pattern.differing else BROKEN if self._broken(c) else NOISY
        question = f"{trouble}/{c.output}"
        settled = self.effort.settles and self._ledger.is_settled(group, question, ENOUGH)
        if settled and (c.pattern.differing or self._noisy(c)):
            return c
        b, k = baseline[c.output], candidate[c.output]
        if c.kind == "discrete":
            c = _explain_discrete(c, b, k, samples)
            shown = bool(c.unexplained_mismatches)
        else:
            changed = self._ledger.is_settled(group, f"{CHANGED}/{c.output}", 1)
            c = _explain_float(c, b, k, samples, self._find_unit(b), changed=changed)
            beyond = c.noise is not None and c.noise.unexplained is not None and c.noise.unexplained > 1
            shown = bool(c.pattern.unexplained) or beyond
        self._ledger.count(group, question, shown)
        return c

    def note_changed(self, outputs: Collection[str], *, settled: bool) -> set[str]:
        """The graph means something else in these outputs: few roundings tell from now on, or (`settled`) none are asked; those that need none."""
        for output in outputs:
            self._ledger.settle(f"{CHANGED}/{output}", 1)
            for trouble in (NOISY, BROKEN) if settled else ():
                self._ledger.settle(f"{trouble}/{output}", ENOUGH)
        return set(outputs) if settled else set()

    def forget_changed(self, outputs: Iterable[str]) -> None:
        """What was noted was held against a truth that is none."""
        for output in outputs:
            self._ledger.settle(f"{CHANGED}/{output}", 0)

    def leaves_open(self, c: Comparison) -> bool:
        """Whether an output differs in a way that no rounding was found to explain."""
        if not c.same_form:
            return True
        if not c.size or not self._suspicious(c):
            return False
        if c.kind == "discrete" or c.pattern.differing:
            return (c.unexplained_mismatches if c.kind == "discrete" else c.pattern.unexplained) != 0
        return c.noise is None or c.noise.unexplained is None or c.noise.unexplained > 1

    def _suspicious(self, c: Comparison) -> bool:
        if c.kind == "discrete":
            return bool(c.mismatched)
        if c.pattern.differing or (c.noise is None and c.max_abs):
            return True
        return self._noisy(c) or self._broken(c)

    def _noisy(self, c: Comparison) -> bool:
        ratio = 0.0 if c.noise is None else max(c.noise.ratio, c.noise.worst_ratio)
        return c.kind == "discrete" or ratio > self._limits.noise

    def _broken(self, c: Comparison) -> bool:
        outside = c.excess(self._limits.atol, self._limits.rtol) > 0
        return c.max_abs is not None and (outside or c.max_abs > self._limits.max_abs)


class _Samples:
    """Legal roundings of one case, made when asked for."""

    def __init__(
        self, sample: Sample, wide: WideSamples, counts: tuple[int, ...], baseline: Outputs, truth: Outputs | None
    ) -> None:
        self._sample, self._wide = sample, wide
        self._baseline = baseline
        self._made: list[Outputs] = []
        self.counts = counts
        self.truth = baseline if truth is None else truth
        self.doubled = truth is not None

    def take(self, count: int, output: str) -> list[Array]:
        """The first `count` samples of an output (fewer where the module refuses)."""
        while len(self._made) < count:
            made = self._sample(len(self._made) + 1, self.doubled)
            if made is None:
                break
            self._made.append(made)
        return [made[output] for made in self._made[:count] if output in made]

    def take_wide(self, output: str) -> list[Array]:
        """Roundings of an output as far from the truth as a number may be that is explained."""
        wide = self._wide(self.truth if self.doubled else None)
        return [made[output] for made in wide if output in made]

    def distrust(self) -> None:
        """The truth is none for this case (the module means something else in float64): perturb the inputs instead."""
        self.truth, self.doubled, self._made = self._baseline, False, []


def is_few(left: int, before: int, size: int) -> bool:
    """Whether what is left unexplained, after so much was before, may be explained by more samples however far beyond it is."""
    return left <= max(2, FEW * size) or left <= before * FALLING


def _explain_discrete(c: Comparison, b: Array, k: Array, samples: _Samples) -> Comparison:
    left, legal = c.mismatched, list[Array]()
    for count in samples.counts:
        legal = [*samples.take(count, c.output), samples.truth[c.output]]
        left = count_unexplained_mismatches(b, k, legal)
        if not left:
            break
    if 0 < left <= max(2, FEW * c.size):
        # A number may be four times as far away as the farthest sample: so may one that decides, and of many some are.
        left = count_unexplained_mismatches(b, k, [*legal, *samples.take_wide(c.output)])
    return replace(c, unexplained_mismatches=left)


def _explain_float(
    c: Comparison, b: Array, k: Array, samples: _Samples, unit: float, *, changed: bool = False
) -> Comparison:
    """`changed`: the graph is known to mean something else, so that the first samples decide, if the truth is one."""
    first = samples.take(samples.counts[0], c.output)
    truth = samples.truth[c.output]
    if samples.doubled and first and not is_credible(b, truth, first, unit):
        # Three samples may be tame by chance: a truth is given up only after some more.
        more = samples.take(samples.counts[1], c.output)
        if not is_credible(b, truth, more, unit):
            samples.distrust()
            truth = b
            c = replace(c, noise=measure_noise(b, k, b, "ulp", unit))
    excess, pattern, left = np.inf, c.pattern.differing, c.size
    for count in samples.counts:
        legal = samples.take(count, c.output)
        # The baseline is one legal rounding too, where the truth is another thing than the baseline.
        known = [*legal, b] if samples.doubled else legal
        beyond = measure_excess(b, k, truth, known, unit)
        excess, before, left = float(beyond.max(initial=0.0)), left, int((beyond > 1).sum())
        few = is_few(left, before, beyond.size)
        pattern = count_unexplained_pattern(b, k, [*legal, truth]) if c.pattern.differing else 0
        if changed and samples.doubled:
            break
        # Not before every kind of sample was asked: squares that vanish are far beyond what random errors show.
        if (excess <= 1 and not pattern) or (excess > HOPELESS and not few and count >= TIED):
            break
    noise = replace(c.noise, unexplained=float(excess)) if c.noise is not None else None
    return replace(c, noise=noise, pattern=replace(c.pattern, unexplained=int(pattern)))
