"""Facts → findings under a policy: the only place where numbers become opinions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxproof.findings import Finding
from onnxproof.policy.baseline_findings import recognise
from onnxproof.policy.causes import with_causes
from onnxproof.policy.latency import judge_latency
from onnxproof.policy.merging import merged
from onnxproof.policy.parity import nothing_finite, objection, remarks
from onnxproof.policy.quality import judge_quality
from onnxproof.policy.refusals import refusals
from onnxproof.policy.thresholds import Policy
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult


def judge(
    observed: Sequence[Finding],
    cases: Sequence[CaseResult],
    policy: Policy,
    blames: Mapping[str, Blame] | None = None,
    counterexamples: Sequence[Mapping[str, Any]] = (),
    *,
    latency: Mapping[str, Any] | None = None,
    quality: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """What the stages observed, and what the numbers say under this policy; the gravest first."""
    findings = [finding for finding in observed if not finding.entry.judged]
    random = {finding.where.output for finding in findings if finding.entry.random}
    findings += _of_cases(cases, policy, random)
    findings += nothing_finite(cases)
    findings += judge_latency(latency, policy.latency, lambda c: objection(c, policy))
    findings += judge_quality(quality, policy.quality) if quality is not None else []
    return _excused(with_causes(findings, blames or {}, counterexamples), policy)


def judge_case(case: CaseResult, policy: Policy) -> list[Finding]:
    """What one case says against the candidate, whatever other cases say."""
    return _excused(_of_cases([case], policy), policy)


def _of_cases(cases: Sequence[CaseResult], policy: Policy, random: Collection[str | None] = ()) -> list[Finding]:
    """What is to be said about outputs and refusals; of an output that is random, nothing."""
    compared = [(case, c) for case in cases for c in case.outputs if c.output not in random]
    return [*merged(one for case, c in compared for one in remarks(case, c, policy)), *refusals(cases)]


def _excused(findings: Iterable[Finding], policy: Policy) -> list[Finding]:
    """The findings, marked where the policy accepts them or its baseline has them; the gravest first."""
    bare = [replace(finding, accepted=None, known=None) for finding in findings]
    accepted = [f.accept(policy.accept[f.code]) if f.code in policy.accept else f for f in bare]
    return sorted((recognise(f, policy.known) for f in accepted), key=lambda finding: -finding.weight)


def to_locate(findings: Iterable[Finding], limit: int = 2) -> list[Finding]:
    """Findings whose case is worth a closer look: the gravest about parity, one per case."""
    worth = [f for f in findings if f.weight and f.entry.locatable and f.where.case]
    return list({f.where.case: f for f in reversed(worth)}.values())[::-1][:limit]
