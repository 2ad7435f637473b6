"""A request under a policy → a proof: the stages are run, and what they reported is judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onnxproof.errors import NothingToVerify, UserError, listed
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.pipeline.collected import Collected, Progress
from onnxproof.pipeline.executors import NotPortable, run_here, run_in_children
from onnxproof.pipeline.latency_parts import earlier_of
from onnxproof.pipeline.stages import Run, Stage, stages_of
from onnxproof.policy.asked import limits_of
from onnxproof.policy.judgement import judge
from onnxproof.policy.quality import check_gates
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment, Timing
from onnxproof.proof.latency import Latency
from onnxproof.proof.proof import Proof
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy


def conduct(request: Request, policy: Policy, *, progress: Progress | None = None) -> Proof:
    """Do what is asked, and judge it."""
    if request.verb != "lint":
        _make_folder(request.out)
    earlier = earlier_of(request.bench)
    request = replace(request, verify=replace(request.verify, limits=limits_of(policy)))
    run = Run(request, policy, Collected(progress or Progress()))
    began = time.perf_counter()
    _carry_out(run, began)
    latency = run.collected.times.finished(earlier) if request.bench is not None else None
    return _judged(run, latency, time.perf_counter() - began)


def _carry_out(run: Run, began: float) -> None:
    stages = stages_of(run.request)

    def announce(stage: Stage) -> None:
        if stage.explains and not run.request.steps.heal:
            _tell_verdict(run, stages, time.perf_counter() - began)

    if run.request.in_process:
        run_here(run, stages, announce)
        return
    try:
        run_in_children(run, stages, announce)
    except NotPortable as error:
        run.collected.observe(found("OX136", f"{error}; it was proved in this process"))
        run_here(run, stages, announce)


def _tell_verdict(run: Run, stages: Sequence[Stage], seconds: float) -> None:
    """Say the verdict where nothing that is still to be done can change it."""
    proof = _judged(run, None, seconds)
    later = [stage for stage in stages if not stage.explains and stage.name not in run.collected.seconds]
    if proof.verdict == "block" or not any(stage.wanted(run) for stage in later):
        run.collected.progress.verdict(proof)


def _make_folder(out: str) -> None:
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--out {out}: expected a folder that can be made and written, came {error.strerror} (`onnxproof explain OX135`)"
        ) from error


def _judged(run: Run, latency: Latency | None, seconds: float) -> Proof:
    collected, policy = run.collected, run.policy
    if run.request.verb != "lint":
        for finding in _missing(run):
            collected.observe(finding)
        _check_promises(run)
    findings = judge(
        collected.findings,
        collected.results,
        policy,
        collected.blames,
        collected.counterexamples,
        latency=latency,
        quality=collected.quality,
        baseline=collected.subject.baseline,
    )
    return Proof(
        subject=collected.subject,
        artifact=collected.artifact,
        environment=_with_session(collected.environment, run.request),
        cases=tuple(collected.results),
        findings=tuple(findings),
        latency=latency,
        quality=collected.quality,
        blame=dict(collected.blames),
        search=collected.search,
        coverage=collected.coverage,
        counterexamples=tuple(collected.counterexamples),
        policy=policy,
        planned=tuple(collected.planned),
        timing=Timing(seconds, dict(collected.seconds)),
    )


def _check_promises(run: Run) -> None:
    """A tolerance or a gate for something that does not exist is a promise about nothing."""
    request, collected, policy = run.request, run.collected, run.policy
    if request.steps.cases or request.bench is not None:
        _check_outputs(policy, collected.results)
    measured = collected.quality is not None or request.evaluate is None or request.steps.cases
    if collected.artifact is not None and measured:
        check_gates(policy.quality, collected.quality)


def _check_outputs(policy: Policy, cases: list[CaseResult]) -> None:
    known = {c.output for case in cases for c in case.outputs}
    unknown = set(policy.outputs) - known
    if known and unknown:
        raise UserError(
            f"a tolerance was given for {listed(sorted(unknown))}, which is no output; outputs are {listed(sorted(known))}"
        )


def _with_session(environment: Environment, request: Request) -> Environment:
    session = request.verify.session
    providers = tuple(provider.name for provider in session.providers)
    return replace(environment, providers=providers, optimization=session.optimization, threads=session.threads)


def _missing(run: Run) -> list[Finding]:
    """What was not compared. Nothing compared is never a pass, whatever else is accepted."""
    request, collected = run.request, run.collected
    if request.steps.cases or request.bench is not None:
        return uncompared(collected)
    if collected.artifact is None:
        return [found("OX004", "nothing was exported")]
    if request.evaluate is not None and collected.quality is None:
        return [found("OX004", "no example was evaluated")]
    return []


def uncompared(collected: Collected) -> list[Finding]:
    """Cases that PyTorch itself rejects, and that there is no fair one in which anything was compared."""
    if any(case.fair and (case.outputs or case.status == "failed") for case in collected.results):
        return _rejected(collected)
    return [*_rejected(collected), found("OX004", "no case gave outputs on both sides: nothing was compared")]


def _rejected(collected: Collected) -> list[Finding]:
    rejected = [case for case in collected.results if case.status == "rejected"]
    if not rejected:
        return []
    first = next((c for c in rejected if c.profile == "data"), rejected[0])
    reason = first.message.splitlines()[0][:200] if first.message else ""
    message = f"{collected.subject.baseline} itself rejects {len(rejected)} cases: {reason}"
    severity: Severity = "review" if first.profile == "data" else "note"
    evidence = {"cases": [c.name for c in rejected]}
    return [found("OX006", message, where=Where(case=first.name), severity=severity, evidence=evidence)]


def require_something(proof: Proof) -> None:
    """Raise where the proof has nothing to say but that nothing was compared."""
    blocks = [f for f in proof.findings if f.severity == "block" and f.accepted is None]
    if blocks and all(f.entry.consequence for f in blocks):
        raise NothingToVerify(blocks[0].message)
