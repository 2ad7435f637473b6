"""What the planned cases left to search for, and what is worth a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxproof.policy.judgement import judge_proof, to_locate
from onnxproof.search.look import Look

if TYPE_CHECKING:
    from onnxproof.findings import Finding
    from onnxproof.pipeline.stages import Run


def worth_searching(run: Run) -> bool:
    """A search was asked for, and the planned cases left something to find."""
    if not run.request.verify.search or not any(case.outputs for case in run.collected.cases.values()):
        return False
    return not any(finding.severity == "block" and finding.weight for finding in _judged(run))


def all_known(run: Run) -> Look:
    """What a search need not find again."""
    return _look(run, [finding for finding in _judged(run) if finding.weight])


def look(run: Run) -> Look:
    """What is worth a closer look."""
    return _look(run, to_locate(_judged(run)))


def _judged(run: Run) -> Sequence[Finding]:
    return judge_proof(run.collected.proof, run.policy).findings


def _look(run: Run, findings: Sequence[Finding]) -> Look:
    return Look(tuple(findings), run.collected.outputs, run.collected.files, run.policy)
