"""A search's inputs run on both sides, one after the other; what is found is written and told at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onnxproof.cases import counterexample_files as keep
from onnxproof.cases.plan import Case, Inputs
from onnxproof.findings import Finding
from onnxproof.parity.verifier import Verifier
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.search import Search
from onnxproof.search.counterexample import list_gating, measure_nearness
from onnxproof.search.hunt import Find, Trial
from onnxproof.search.look import FOUND, TRYING, Look


@dataclass(frozen=True)
class Told:
    """Who hears of a find (its name and file), of its result, and of how far the search is."""

    hit: Callable[[str, str], None]
    case: Callable[[CaseResult], None]
    searched: Callable[[Search], None]


class Attempts:
    """The hunt's hands: it proposes inputs, this runs them."""

    def __init__(self, verifier: Verifier, look: Look, folder: Path, told: Told) -> None:
        self._verifier = verifier
        self._policy = look.policy
        self._known = {(finding.code, finding.where.output) for finding in look.findings}
        self._trying, self._found = folder / TRYING, folder / FOUND
        self._told = told
        self._last: CaseResult | None = None

    def attempt(self, name: str, inputs: Inputs) -> Trial:
        """Run one input and say how near it came; what is known already is no news."""
        keep.write(self._trying, inputs, lasting=False)  # so that an input that kills the process is not lost with it
        case = Case(name, profile="search")
        try:
            result = self._last = self._verifier.evaluate(case, inputs, glance=bool(self._known))
            if self._known and self._may_be_news(result):
                result = self._last = self._verifier.evaluate(case, inputs)
        except MemoryError:
            return Trial(0.0)  # too large for this machine: nothing is learnt from it
        score, row = measure_nearness(result, self._policy.noise)
        news = [f for f in list_gating(result, self._policy) if not self._is_known(f)]
        return Trial(score, row, max((f.weight for f in news), default=0))

    def _may_be_news(self, glance: CaseResult) -> bool:
        """Whether more than what is known already may be behind what is open at a glance: only then it is worth its samples."""
        opened = {c.output for c in glance.outputs if self._verifier.leaves_open(c)}
        against = list_gating(glance, self._policy)
        told = {f.where.output for f in against}
        return glance.status != "compared" or not all(map(self._is_known, against)) or not opened <= told

    def _is_known(self, finding: Finding) -> bool:
        """Whether it was told of this output, or would go without saying beside what was."""
        codes = (finding.code, *finding.entry.gives_way_to)
        return any((code, finding.where.output) in self._known for code in codes)

    def tell(self, outcome: Search, find: Find | None) -> None:
        """Report progress, and a find before the next input may kill the process."""
        if find is not None and self._last is not None:
            keep.write(self._found, find.inputs)
            self._told.hit(find.name, str(self._found))
            self._told.case(self._last)
        self._told.searched(outcome)

    def close(self) -> None:
        """Nothing killed the process."""
        self._trying.unlink(missing_ok=True)
