"""A request under a policy → a proof: the stages are run, and what they reported is judged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onnxproof.errors import NothingToVerify, UserError, first_line, list_names
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.pipeline.collected import Collected, Progress
from onnxproof.pipeline.executors import Executor, NotPortable, run_here, run_in_children, run_stages
from onnxproof.pipeline.runtimes import sweep
from onnxproof.pipeline.stages import Run, Stage, list_stages
from onnxproof.policy.asked import find_limits
from onnxproof.policy.judgement import judge_proof
from onnxproof.policy.parity import find_nothing_compared
from onnxproof.policy.quality import check_gates
from onnxproof.proof.environment import Timing
from onnxproof.proof.latency import Earlier
from onnxproof.proof.proof import Proof
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.request import Delivery, Request
from onnxproof.request.thresholds import Policy


def conduct(request: Request, policy: Policy, *, progress: Progress | None = None) -> Proof:
    """Do what is asked, and judge it."""
    if request.verb != "lint":
        # Before minutes of work whose result could not be written.
        _make_folder(request.out)
    collected = Collected(progress or Progress(), earlier=read_earlier(request.bench))
    request = replace(request, verify=replace(request.verify, limits=find_limits(policy)))
    run = Run(request, policy, collected)
    began = time.perf_counter()
    if request.verb != "lint":
        collected.journal.open(Path(request.out), _describe(request, policy), resume=request.resume)
    try:
        _carry_out(run, began)
        return _judge(run, time.perf_counter() - began)
    finally:
        if collected.journal.trouble is not None:
            collected.progress.warning(f"{collected.journal.trouble}; a run that is ended now cannot be resumed")
        collected.journal.close()


def _describe(request: Request, policy: Policy) -> str:
    """What is asked, whoever asks and wherever the answer is written: who goes on must have been asked the same."""
    asked = replace(request, out="", resume=False, delivery=Delivery(), pickled=None, held=None)
    asked = replace(asked, verify=replace(asked.verify, counterexamples=None))
    return hashlib.blake2b(repr((asked, policy)).encode(), digest_size=16).hexdigest()


def read_earlier(settings: BenchSettings | None) -> Earlier | None:
    """What the proof of `--baseline` measured."""
    if settings is None or settings.baseline is None:
        return None
    proof = Proof.load(settings.baseline)
    latency = proof.latency
    if latency is None:
        raise UserError(f"--baseline {settings.baseline}: this proof has no times; make one with `onnxproof bench`")
    runs = tuple(replace(run, samples=(), blocks=()) for run in latency.runs)
    versions = {name: str(getattr(proof.environment, name)) for name in ("torch", "onnxruntime", "onnxproof")}
    return Earlier(settings.baseline, latency.machine.fingerprint, runs, latency.speedup, versions)


def _carry_out(run: Run, began: float) -> None:
    stages = list_stages(run.request)

    exported: list[Proof] = []

    def announce(stage: Stage) -> None:
        if stage.name == "verify":
            exported.append(run.collected.known)
        if stage.explains and not run.request.steps.heal:
            _tell_verdict(run, stages, time.perf_counter() - began)

    def work(run: Run, executor: Executor) -> None:
        run_stages(run, stages, executor, announce)
        if run.request.sweep and exported:
            sweep(run, exported[-1], executor, lambda there: _judge(there, 0.0))

    if run.request.in_process:
        run_here(run, work)
        return
    try:
        run_in_children(run, work)
    except NotPortable as error:
        run.collected.observe(found("OX136", f"{error}; it was proved in this process"))
        run_here(run, work)


def _tell_verdict(run: Run, stages: Sequence[Stage], seconds: float) -> None:
    """Say the verdict where nothing that is still to be done can change it."""
    proof = _judge(run, seconds)
    if run.request.sweep:
        return  # it may depend on what is asked next
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


def _judge(run: Run, seconds: float) -> Proof:
    collected, session = run.collected, run.request.verify.session
    if run.request.verb != "lint":
        for finding in _list_missing(run):
            collected.observe(finding)
        _check_promises(run)
    environment = replace(
        collected.known.environment,
        providers=tuple(provider.name for provider in session.providers),
        optimization=session.optimization,
        threads=session.threads,
    )
    timing = Timing(seconds, dict(collected.seconds))
    return judge_proof(replace(collected.proof, environment=environment, timing=timing), run.policy)


def _check_promises(run: Run) -> None:
    """A tolerance or a gate for something that does not exist is a promise about nothing."""
    request, proof, policy = run.request, run.collected.proof, run.policy
    known = {c.output for case in proof.cases for c in case.outputs}
    unknown = set(policy.outputs) - known
    if known and unknown and (request.steps.cases or request.bench is not None):
        raise UserError(
            f"a tolerance was given for {list_names(sorted(unknown))}, which is no output; outputs are {list_names(sorted(known))}"
        )
    measured = proof.quality is not None or request.evaluate is None or request.steps.cases
    if proof.artifact is not None and measured:
        check_gates(policy.quality, proof.quality)


def _list_missing(run: Run) -> list[Finding]:
    """What was not compared. Nothing compared is never a pass, whatever else is accepted."""
    request, proof = run.request, run.collected.proof
    if request.steps.cases or request.bench is not None:
        return judge_uncompared(proof)
    if proof.artifact is None:
        return [found("OX004", "nothing was exported")]
    if request.evaluate is not None and proof.quality is None and not proof.cases:
        return [found("OX004", "no example was evaluated")]
    return []


def judge_uncompared(proof: Proof) -> list[Finding]:
    """Cases that PyTorch itself rejects, and that there is no fair one in which anything was compared."""
    findings: list[Finding] = []
    rejected = [case for case in proof.cases if case.status == "rejected"]
    if rejected:
        first = next((c for c in rejected if c.profile == "data"), rejected[0])
        reason = first_line(first.message, 200)
        message = f"{proof.subject.baseline} itself rejects {len(rejected)} cases: {reason}"
        severity: Severity = "review" if first.profile == "data" else "note"
        evidence = {"cases": [c.name for c in rejected]}
        findings.append(found("OX006", message, where=Where(case=first.name), severity=severity, evidence=evidence))
    return [*findings, *find_nothing_compared(proof.cases)]


def require_something(proof: Proof) -> None:
    """Raise where the proof has nothing to say but that nothing was compared."""
    blocks = [f for f in proof.findings if f.severity == "block" and f.accepted is None]
    if blocks and all(f.entry.consequence for f in blocks):
        raise NothingToVerify(blocks[0].message)
