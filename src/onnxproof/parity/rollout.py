"""The free run: every side carries its own state, and drift (rounding that grows) is told from a fault.

The module in float32 and its legal roundings run as freely as the candidate does: what they reach by a step is what rounding
makes of it there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from onnxproof.cases.plan import Inputs
from onnxproof.cases.rollout import Rollouts, Run, Walk, carry
from onnxproof.errors import Rejected
from onnxproof.parity.comparison import compare
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.truth import Outputs, Truth
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.rollout import Rollout
from onnxproof.request.request import Limits
from onnxproof.tensors.arrays import Arrays


@dataclass(frozen=True)
class Sides:
    """What answers for the module."""

    eager: EagerRunner
    double: DoubleRunner | None


class FreeRun:
    """Both sides along one walk."""

    def __init__(self, rollouts: Rollouts, walk: Walk, steps: int, truth: Truth, limits: Limits) -> None:
        self._rollouts, self._truth, self._limits = rollouts, truth, limits
        self._drives, self._begin = rollouts.drive(walk)[:steps], rollouts.begin(walk)
        self._name = walk.name
        self._samples: dict[tuple[int, bool], list[Arrays]] = {}

    def run(self, sides: Sides, candidate: Run, hidden: Mapping[str, str], begin: Inputs, *, guessed: bool) -> Rollout:
        """Step by step, until something is beyond what rounding makes of it.

        `hidden`: what only the candidate has as outputs and inputs, because the module keeps it inside, and `begin` its beginning.
        """
        self._sides, state = sides, {**self._rollouts.state, **hidden}
        theirs = self._walk(sides.eager.run, sides.eager)
        exact = self._walk(sides.double.run, sides.double) if sides.double is not None else []
        ours = (made for _, made in carry(candidate, self._drives, {**self._begin, **begin}, state))
        rows, message = list[Comparison](), ""
        for step, baseline in enumerate(theirs):
            try:
                answer = next(ours)
            except Rejected as error:
                message = str(error)[:1000]
                break
            rows.append(self._judge(step, exact[step] if step < len(exact) else None, baseline, answer))
            if is_beyond(rows[-1]):
                break
        told = {**(self._rollouts.moving if guessed else self._rollouts.state), **hidden}
        return Rollout(self._name, told, guessed, tuple(rows), len(theirs), message)

    def _walk(self, run: Run, side: EagerRunner | DoubleRunner) -> list[Arrays]:
        """All steps of a side that keeps what it keeps, as far as it goes."""
        made = list[Arrays]()
        with suppress(Rejected, Unavailable), side.rest.remember():
            made += (one for _, one in carry(run, self._drives, self._begin, self._rollouts.state))
        return made

    def _judge(self, step: int, truth: Arrays | None, baseline: Arrays, answer: Arrays) -> Comparison:
        """The output that is farthest from what rounding makes of it."""
        limits = self._limits
        rows = [
            compare(name, baseline[name], answer[name], atol=limits.atol, rtol=limits.rtol)
            for name in baseline
            if name in answer
        ]
        sample = partial(self._sample, step)
        judged, _ = self._truth.judge_case({}, truth, baseline, answer, rows, f"step {step}", sample=sample)
        return max(judged, key=lambda c: (is_beyond(c), c.noise_ratio or 0.0))

    def _sample(self, step: int, seed: int, doubled: bool) -> Outputs | None:
        """A legal rounding of everything up to a step."""
        side = self._sides.double if doubled else self._sides.eager
        if (seed, doubled) not in self._samples and side is not None:
            self._samples[seed, doubled] = self._walk(partial(self._rounded, seed, doubled), side)
        made = self._samples.get((seed, doubled), [])
        return made[step] if step < len(made) else None

    def _rounded(self, seed: int, doubled: bool, inputs: Inputs) -> Arrays:
        made = self._truth.sample(inputs, seed, doubled)
        if made is None:
            raise Rejected("there is no legal rounding of this step")
        return made


def is_beyond(c: Comparison) -> bool:
    """Whether numbers say that no rounding makes this of an output."""
    unexplained = c.noise.unexplained if c.noise is not None else None
    return (
        not c.same_form
        or bool(c.pattern.unexplained)
        or bool(c.unexplained_mismatches)
        or (unexplained is not None and unexplained > 1)
    )


def name_answers(
    run: Run, outputs: Mapping[str, str], hidden: Collection[str] = (), handed: Mapping[str, str] | None = None
) -> Run:
    """A session that answers under the module's names; what is hidden has the file's, what is handed on is what came in."""

    def answer(inputs: Inputs) -> Arrays:
        raw = run(inputs)
        named = {name: raw[graph] for name, graph in outputs.items() if graph in raw}
        passed = {name: inputs[into] for name, into in (handed or {}).items()}
        return {**named, **passed, **{name: raw[name] for name in hidden}}

    return answer
