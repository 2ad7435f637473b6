"""The screen: every size and every id once, at a glance.

A size or an id that the plan leaves out costs a forward on both sides; only where the answers look different is it judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from onnxproof.candidates.roles import BASELINE, CANDIDATE
from onnxproof.cases.domain import count_elements
from onnxproof.cases.plan import Inputs, make_case
from onnxproof.errors import Rejected
from onnxproof.parity.slabs import measure_scale, to_float64
from onnxproof.parity.verifier import Verifier
from onnxproof.search.hunt import Find, Trial
from onnxproof.search.sweeps import Sweeps, list_cuts
from onnxproof.tensors.arrays import Array, Arrays

# Seconds of work that the screen always has, and its share of the work of the planned cases.
GRACE = 0.3
SHARE = 0.1
# Seconds for making an input and for each of its elements, besides the forwards.
MADE, ELEMENT = 3e-4, 4e-8
# Rows of an input that holds ids.
ROWS = 2048
# A difference, over the scale of what stands around it, from which on an answer looks different.
LOOKS_DIFFERENT = 1e-4
# Inputs that are judged in full: a model whose answers always look different is ill-conditioned, and the plan has told so.
JUDGED = 8


class Screen:
    """One look at everything that the plan left out."""

    def __init__(self, verifier: Verifier, seed: int, spent: float, enter: Callable[[str, str], None]) -> None:
        """`spent`: seconds of work of the planned cases; `enter` hears of an input and of who computes."""
        self._verifier, self._seed, self._enter = verifier, seed, enter
        self._left = GRACE + SHARE * spent
        self.inputs = 0
        """How many were looked at."""

    def run(self, judge: Callable[[str, Inputs], Trial], tell: Callable[[Find], None]) -> None:
        """Look at inputs until the work is spent or something is found that blocks."""
        verifier, judged, worst = self._verifier, 0, 0
        if not verifier.output_pairs:  # another process ran the planned cases
            verifier.evaluate(make_case({}, "example"), verifier.supply.example(), glance=True)
        for name, inputs in self._propose():
            if self._left <= 0 or judged >= JUDGED:
                return
            different = self._find_different(name, inputs)
            if different is None:
                continue
            judged += 1
            fails = judge(name, different).fails
            if fails > worst:
                worst = fails
                tell(Find(name, different, fails))
            if worst > 1:
                return

    def _propose(self) -> Iterator[tuple[str, Inputs]]:
        """Sizes and ids in turns, so that neither takes all of the work."""
        supply, evaluator = self._verifier.supply, self._verifier.evaluator
        sweeps = Sweeps(supply, ROWS, list_cuts(evaluator.small) if evaluator is not None else ())
        # Before they are made: large inputs take longer to make than small ones to look at.
        fitting = (sizes for sizes in sweeps.sizes() if self._cost(count_elements(supply.domains, sizes)) <= self._left)
        cases = (make_case(sizes, "normal", self._seed) for sizes in fitting)
        sizes = ((f"screen/{case.name}", supply.make_inputs(case)) for case in cases)
        named = ((f"screen/ids/{i}", inputs) for i, inputs in enumerate(sweeps.ids(self._random), 1))
        ids = ((name, inputs) for name, inputs in named if self._cost(_count_elements(inputs)) <= self._left)
        turns: list[Iterator[tuple[str, Inputs]]] = [ids, sizes]
        while turns:
            for one in list(turns):
                proposed = next(one, None)
                if proposed is None:
                    turns.remove(one)
                else:
                    yield proposed

    def _random(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self._seed % 2**32, *numbers])

    def _cost(self, elements: int) -> float:
        return 2 * self._verifier.work.forward(elements) + MADE + ELEMENT * elements

    def _find_different(self, name: str, inputs: Inputs) -> Inputs | None:
        """What is to be judged of inputs whose answers look different: the rows that part most, where these do so alone too."""
        verifier, elements = self._verifier, _count_elements(inputs)
        self._left -= self._cost(elements)
        self.inputs += 1
        self._enter(name, BASELINE)
        try:
            with verifier.work.threads(elements):
                baseline = verifier.eager.run(inputs)
        except (Rejected, MemoryError):
            return None
        self._enter(name, CANDIDATE)
        try:
            candidate = self._ask_candidate(inputs, baseline)
        except Rejected:
            return inputs
        if not _look_different(baseline, candidate):
            return None
        part = verifier.choose_rows(inputs, baseline, candidate)
        if part is None:
            return inputs
        # What a size does (an index that overflows) is gone with the size.
        try:
            return part.inputs if _look_different(part.baseline, self._ask_candidate(part.inputs, baseline)) else inputs
        except Rejected:
            return inputs

    def _ask_candidate(self, inputs: Inputs, baseline: Arrays) -> Arrays:
        """The answers to what the module answers too."""
        answers = self._verifier.session.run(inputs)
        return {name: answers[graph] for name, graph in self._verifier.output_pairs.items() if name in baseline}


def _look_different(baseline: Arrays, candidate: Arrays) -> bool:
    return any(differ(baseline[name], answer) for name, answer in candidate.items())


def _count_elements(inputs: Inputs) -> int:
    return sum(array.size for array in inputs.values())


def differ(baseline: Array, candidate: Array) -> bool:
    """Whether two answers look different."""
    if baseline.shape != candidate.shape or baseline.dtype != candidate.dtype:
        return True
    if baseline.dtype.kind not in "fc" or not baseline.size:
        return not np.array_equal(baseline, candidate)
    b, k = to_float64(baseline), to_float64(candidate)
    with np.errstate(all="ignore"):
        apart = np.abs(b - k) > LOOKS_DIFFERENT * measure_scale(b)
    return bool((apart | (np.isfinite(b) != np.isfinite(k))).any())
