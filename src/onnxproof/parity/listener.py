"""Who hears what a verification finds, while it is under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnxproof.cases.plan import Case
from onnxproof.findings import Finding
from onnxproof.parity.ledger import Ledger
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.rollout import Rollout
from onnxproof.proof.search import Coverage


@dataclass(frozen=True)
class Listener:
    """Where results go while the work is under way."""

    finding: Callable[[Finding], None]
    plan: Callable[[Sequence[Case], Mapping[str, Coverage]], None]
    """The cases, and how much of the user's data they cover."""
    stage: Callable[[str, str], None]
    """A case and the stage it enters, a role where one of the sides computes: what to blame if the process dies."""
    case: Callable[[CaseResult, Ledger | None], None]
    """A result, and the account after it, where others go on from there."""
    rollout: Callable[[Rollout], None] = lambda rollout: None
    outputs: Callable[[Mapping[str, str]], None] = lambda pairs: None
    """Module's output → graph's output, as soon as it is known."""


# Hears nothing.
SILENT = Listener(
    lambda finding: None, lambda cases, coverage: None, lambda case, stage: None, lambda result, ledger: None
)
