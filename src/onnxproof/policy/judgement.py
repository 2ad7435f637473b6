"""Facts → findings under a policy: the only place where numbers become opinions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from onnxproof.findings import Finding
from onnxproof.policy.baseline_findings import list_known, recognise
from onnxproof.policy.causes import add_causes
from onnxproof.policy.latency import judge_latency
from onnxproof.policy.merging import merge_findings
from onnxproof.policy.parity import find_nothing_compared, find_nothing_finite, find_objection, list_remarks
from onnxproof.policy.precision import judge_precision
from onnxproof.policy.quality import judge_quality
from onnxproof.policy.refusals import judge_refusals
from onnxproof.policy.rollout import judge_rollout
from onnxproof.policy.runtimes import judge_runtimes
from onnxproof.policy.trials import judge_trials
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment
from onnxproof.proof.proof import Proof
from onnxproof.proof.subject import SubjectFacts
from onnxproof.request.thresholds import Policy

P = TypeVar("P", bound=Proof)


def judge_proof(proof: P, policy: Policy) -> P:
    """The same facts under a policy: what the stages observed, and what the numbers say; the gravest first."""
    chosen = proof.chosen.kind if proof.chosen is not None else None
    baseline, observed = proof.subject.baseline, [finding for finding in proof.findings if not finding.entry.judged]
    random = {finding.where.output for finding in observed if finding.entry.random}
    seen = [*observed, *_judge_cases(proof.cases, policy, proof.counterpart, random)]
    findings = [
        *seen,
        *find_nothing_finite(proof.cases),
        *(one for one in find_nothing_compared(proof.cases) if proof.cases and one not in observed),
        *judge_precision(proof, policy.quality, right=not any(finding.weight for finding in seen)),
        *judge_trials(proof.trials),
        *judge_rollout(proof.rollout, proof.cases, policy, proof.counterpart),
        *judge_latency(proof.latency, policy.latency, lambda c: find_objection(c, policy, baseline), baseline),
        *judge_runtimes(proof.runtimes),
        *(judge_quality(proof.quality, policy.quality, baseline, chosen) if proof.quality is not None else ()),
    ]
    caused = _confirm_pairing(add_causes(findings, proof.blame, proof.counterexamples), proof.cases)
    return replace(proof, policy=policy, findings=tuple(_excuse(caused, policy)))


def _confirm_pairing(findings: Sequence[Finding], cases: Sequence[CaseResult]) -> list[Finding]:
    """Inputs that were paired by a guess are paired right where the answers then agree."""
    agree = any(case.fair and case.status == "compared" for case in cases) and not any(
        finding.entry.judged and finding.weight for finding in findings
    )
    return [
        replace(one, severity="note")
        if agree and one.entry.confirmed_by_agreement and "promised" not in one.evidence
        else one
        for one in findings
    ]


def judge(observed: Sequence[Finding], cases: Sequence[CaseResult], policy: Policy) -> list[Finding]:
    """What was observed and compared, judged where there is no proof of it."""
    facts = Proof(SubjectFacts(), None, Environment(), tuple(cases), tuple(observed))
    return list(judge_proof(facts, policy).findings)


def judge_case(case: CaseResult, policy: Policy, baseline: str = "PyTorch") -> list[Finding]:
    """What one case says against the candidate, whatever other cases say."""
    return _excuse(_judge_cases([case], policy, baseline), policy)


def judge_against(proof: P, baseline: Proof) -> P:
    """The same facts where only what is worse than in the baseline gates."""
    return judge_proof(proof, replace(proof.policy, known=list_known(baseline.findings)))


def _judge_cases(
    cases: Sequence[CaseResult], policy: Policy, baseline: str, random: Collection[str | None] = ()
) -> list[Finding]:
    """What is to be said about outputs and refusals; of an output that is random, nothing."""
    compared = [(case, c) for case in cases for c in case.outputs if c.output not in random]
    told = merge_findings(one for case, c in compared for one in list_remarks(case, c, policy, baseline))
    return [*told, *judge_refusals(cases, baseline)]


def _excuse(findings: Iterable[Finding], policy: Policy) -> list[Finding]:
    """The findings, marked where the policy accepts them or its baseline has them; the gravest first."""
    bare = [replace(finding, accepted=None, known=None) for finding in findings]
    accepted = [f.accept(policy.accept[f.code]) if f.code in policy.accept else f for f in bare]
    return sorted((recognise(f, policy.known) for f in accepted), key=lambda finding: -finding.weight)


def to_locate(findings: Iterable[Finding], limit: int = 2) -> list[Finding]:
    """Findings whose case is worth a closer look: the gravest about parity, one per case."""
    worth = [f for f in findings if f.weight and f.entry.locatable and f.where.case]
    return list({f.where.case: f for f in reversed(worth)}.values())[::-1][:limit]
