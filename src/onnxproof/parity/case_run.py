"""One case on its way through the sides: who is at work, for how long, and what each answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from onnxproof.candidates.roles import name_stage
from onnxproof.cases.plan import Case, Inputs
from onnxproof.parity.ledger import FAIR
from onnxproof.parity.truth import Outputs
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.subject import TensorFacts

T = TypeVar("T")
# Profiles of inputs that the user brings, or the module itself: where they hold NaN, all that is made of it counts.
BROUGHT = ("data", "example", "rollout")


@dataclass(frozen=True)
class Answers:
    """What the sides say to one input; without a truth the module cannot run in float64."""

    inputs: Inputs
    original: Outputs
    """What a file in a lower precision was made of answers; empty where the module is the original."""
    baseline: Outputs
    truth: Outputs | None


@dataclass
class CaseRun:
    """The clock of a case."""

    case: Case
    inputs: Inputs
    tell: Callable[[str, str], None]
    """Hears the case and the stage that it enters."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def elements(self) -> int:
        """How large the input is."""
        return sum(array.size for array in self.inputs.values())

    @property
    def group(self) -> str:
        """Cases that weigh alike: differences on denormal inputs weigh less, and must not settle it for ordinary ones."""
        return "denormal" if self.case.profile == "denormal" else FAIR if self.case.fair else "unfair"

    @property
    def asks_for_nonfinite(self) -> bool:
        """Whether it holds NaN or infinities because the module has an answer to some, and nobody else brought them."""
        floats = (array for array in self.inputs.values() if array.dtype.kind == "f")
        return self.case.fair and self.case.profile not in BROUGHT and any(not np.isfinite(a).all() for a in floats)

    def time(self, stage: str, work: Callable[[], T]) -> T:
        """Do some work under the name of a stage."""
        self.tell(self.case.name, stage)
        began = time.perf_counter()
        try:
            return work()
        finally:
            name = name_stage(stage)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def begin(self) -> CaseResult:
        """The result before anything was asked."""
        case, facts = self.case, {name: TensorFacts(a.shape, a.dtype.name) for name, a in self.inputs.items()}
        return CaseResult(case.name, case.profile, case.fair, "rejected", facts, seconds=self.seconds, sizes=case.sizes)
