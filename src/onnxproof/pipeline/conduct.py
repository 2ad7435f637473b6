"""The conductor: subject → artifact → cases → findings → verdict, in this process or in supervised children."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxproof.errors import NothingToVerify, UserError, listed
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.pipeline.children import death_of, in_children, run_child
from onnxproof.pipeline.collected import InternalError, NotPortable, Progress, Record
from onnxproof.pipeline.here import in_process
from onnxproof.pipeline.latency_parts import earlier_of
from onnxproof.policy.policy import Policy, judge
from onnxproof.policy.quality import check_gates
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.proof import Proof
from onnxproof.request.request import Job

__all__ = ["InternalError", "Progress", "Record", "conduct", "conduct_lint", "require_something"]


def conduct(job: Job, policy: Policy, *, isolate: bool, verify: bool = True, progress: Progress | None = None) -> Proof:
    """Do a job and judge it."""
    record = Record(progress or Progress())
    _make_folder(job.out)
    earlier = earlier_of(job.bench)
    began = time.perf_counter()
    try:
        work = in_children if isolate else in_process
        work(job, record, policy, verify)
    except NotPortable as error:
        record.findings.append(found("OX136", f"{error}; it was proved in this process"))
        in_process(job, record, policy, verify)
    latency = record.clock.finished(earlier) if job.bench is not None else None
    return _finish(job, record, policy, verify, time.perf_counter() - began, latency)


def _make_folder(out: str) -> None:
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--out {out}: expected a folder that can be made and written, came {error.strerror} (`onnxproof explain OX135`)"
        ) from error


def conduct_lint(job: Job, policy: Policy, *, isolate: bool, progress: Progress | None = None) -> Proof:
    """Look at the module without exporting it."""
    record = Record(progress or Progress())
    began = time.perf_counter()
    if isolate:
        end = run_child({"stage": "lint", "job": job}, record, job.case_timeout)
        if end is not None:
            record.findings.append(death_of(end, record, "block"))
    else:
        from onnxproof.pipeline import stages

        stages.run_lint(job, record.receive)
    return _proof(job, record, record.findings, policy, time.perf_counter() - began)


def _finish(
    job: Job,
    record: Record,
    policy: Policy,
    verify: bool,
    seconds: float,
    latency: Mapping[str, Any] | None = None,
) -> Proof:
    findings, cases = list(record.findings), list(record.cases.values())
    if verify or job.bench is not None:
        findings += _coverage(record)
        _check_outputs(policy, cases)
    elif record.artifact is None:
        findings.append(found("OX004", "nothing was exported"))
    elif job.evaluate is not None and record.quality is None:
        findings.append(found("OX004", "no example was evaluated"))
    if record.artifact is not None and (record.quality is not None or job.evaluate is None or verify):
        check_gates(policy.quality, record.quality)
    return _proof(job, record, findings, policy, seconds, latency)


def _proof(
    job: Job,
    record: Record,
    findings: list[Finding],
    policy: Policy,
    seconds: float,
    latency: Mapping[str, Any] | None = None,
) -> Proof:
    cases = list(record.cases.values())
    return Proof(
        subject=record.subject,
        artifact=record.artifact.to_json() if record.artifact else None,
        environment={**record.environment, **_session_facts(job)},
        cases=tuple(cases),
        findings=tuple(
            judge(
                findings, cases, policy, record.blames, record.counterexamples, latency=latency, quality=record.quality
            )
        ),
        latency=latency,
        quality=record.quality,
        blame=record.blames,
        search=record.search,
        coverage=record.coverage,
        counterexamples=tuple(record.counterexamples),
        policy=policy,
        planned=tuple(record.planned),
        timing={"seconds": seconds},
    )


def _check_outputs(policy: Policy, cases: list[CaseResult]) -> None:
    """A tolerance for an output that does not exist is a promise about nothing."""
    known = {c.output for case in cases for c in case.outputs}
    unknown = set(policy.outputs) - known
    if known and unknown:
        raise UserError(
            f"a tolerance was given for {listed(sorted(unknown))}, which is no output; outputs are {listed(sorted(known))}"
        )


def _session_facts(job: Job) -> dict[str, Any]:
    session = job.verify.session
    return {
        "providers": [provider.name for provider in session.providers],
        "optimization": session.optimization,
        "threads": session.threads,
    }


def _coverage(record: Record) -> list[Finding]:
    """What was not compared. Nothing compared is never a pass, whatever else is accepted."""
    cases = list(record.cases.values())
    rejected = [case for case in cases if case.status == "rejected"]
    added = []
    if rejected:
        first = next((c for c in rejected if c.profile == "data"), rejected[0])
        reason = first.message.splitlines()[0][:200] if first.message else ""
        message = f"PyTorch itself rejects {len(rejected)} cases: {reason}"
        severity: Severity = "review" if first.profile == "data" else "note"
        evidence = {"cases": [c.name for c in rejected]}
        added.append(found("OX006", message, where=Where(case=first.name), severity=severity, evidence=evidence))
    if not any(case.fair and (case.outputs or case.status == "failed") for case in cases):
        added.append(found("OX004", "no case gave outputs on both sides: nothing was compared"))
    return added


def require_something(proof: Proof) -> None:
    """Raise where the proof has nothing to say but that nothing was compared."""
    blocks = [f for f in proof.findings if f.severity == "block" and f.accepted is None]
    if blocks and all(f.code == "OX004" for f in blocks):
        raise NothingToVerify(blocks[0].message)
