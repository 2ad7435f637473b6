"""The free run, judged: the first step that rounding does not explain, and whether it is the step or the state."""

from __future__ import annotations

from collections.abc import Sequence

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.policy.parity import weigh_output
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.rollout import Rollout
from onnxproof.request.thresholds import Policy

STATE = "Fed with {baseline}'s state, that step agrees: it is the state that is wrong, not the step"
STEP = "Fed with {baseline}'s state, that step is wrong too: it is the step, not what was carried into it"
ALONE = "That step was not run with {baseline}'s state"


def judge_rollout(rollout: Rollout | None, cases: Sequence[CaseResult], policy: Policy, baseline: str) -> list[Finding]:
    """What parts in free run, if anything does."""
    if rollout is None:
        return []
    step = len(rollout.steps)
    if rollout.message:
        return [
            _make(
                rollout,
                cases,
                policy,
                baseline,
                step,
                "block",
                f"onnxruntime refuses it: {rollout.message[:200]}",
                None,
            )
        ]
    for step, comparison in enumerate(rollout.steps):
        grave = weigh_output(comparison, policy, baseline)
        if grave is not None:
            told = grave.message
            return [_make(rollout, cases, policy, baseline, step, grave.severity, told, comparison.output)]
    return []


def _make(
    rollout: Rollout,
    cases: Sequence[CaseResult],
    policy: Policy,
    baseline: str,
    step: int,
    severity: Severity,
    told: str,
    output: str | None,
) -> Finding:
    name = f"{rollout.name}/step={step}"
    forced = next((case for case in cases if case.name == name), None)
    wrong = forced is not None and (
        forced.status == "failed" or any(weigh_output(c, policy, baseline) is not None for c in forced.outputs)
    )
    why = (STEP if wrong else ALONE if forced is None else STATE).format(baseline=baseline)
    message = f"in free run the sides part at step {step} of {rollout.planned}: {told}. {why}"
    evidence = {
        "step": step,
        "steps": rollout.planned,
        "forced": None if forced is None else wrong,
        "state": dict(rollout.state),
    }
    return found(
        "OX231",
        message,
        severity=severity,
        where=Where(output=output, case=name if forced else None),
        evidence=evidence,
    )
