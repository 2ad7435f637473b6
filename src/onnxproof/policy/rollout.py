"""The free run, judged: the first step that rounding does not explain, and whether it is the step or the state."""

from __future__ import annotations

from collections.abc import Sequence

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.policy.parity import weigh_output
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.rollout import Rollout
from onnxproof.request.thresholds import Policy

# What is to be said where the step, fed with the baseline's state, was wrong, was right, or was not run.
WHY = {
    True: "Fed with {0}'s state, that step is wrong too: it is the step, not what was carried into it",
    False: "Fed with {0}'s state, that step agrees: it is the state that is wrong, not the step",
    None: "That step was not run with {0}'s state",
}


def judge_rollout(rollout: Rollout | None, cases: Sequence[CaseResult], policy: Policy, baseline: str) -> list[Finding]:
    """What parts in free run, if anything does."""
    parted = _find_parting(rollout, policy, baseline) if rollout is not None else None
    if rollout is None or parted is None:
        return []
    step, severity, told, output = parted
    name = f"{rollout.name}/step={step}"
    forced = next((_is_wrong(case, policy, baseline) for case in cases if case.name == name), None)
    message = f"in free run the sides part at step {step} of {rollout.planned}: {told}. {WHY[forced].format(baseline)}"
    evidence = {"step": step, "steps": rollout.planned, "forced": forced, "state": dict(rollout.state)}
    where = Where(output=output, case=None if forced is None else name)
    return [found("OX231", message, severity=severity, where=where, evidence=evidence)]


def _find_parting(rollout: Rollout, policy: Policy, baseline: str) -> tuple[int, Severity, str, str | None] | None:
    """The first step that gates, how grave it is, why, and in which output."""
    for step, comparison in enumerate(rollout.steps):
        grave = weigh_output(comparison, policy, baseline)
        if grave is not None:
            return step, grave.severity, grave.message, comparison.output
    refused = f"onnxruntime refuses it: {rollout.message[:200]}"
    return (len(rollout.steps), "block", refused, None) if rollout.message else None


def _is_wrong(case: CaseResult, policy: Policy, baseline: str) -> bool:
    return case.status == "failed" or any(weigh_output(c, policy, baseline) is not None for c in case.outputs)
