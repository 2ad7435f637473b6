"""One file on many runtimes: the cases are verified on each, one after the other, and what does not depend on it is computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from onnxproof.candidates import INSTALLED, choose_candidate, expand_runtimes
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import UserError, condense
from onnxproof.findings import Finding, found
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.executors import Executor, run_stage
from onnxproof.pipeline.stages import Locate, Run, Verify
from onnxproof.proof.proof import Proof
from onnxproof.proof.runtimes import RuntimeResult, find_changes
from onnxproof.request.request import Request

# A run as a judged proof.
Judge = Callable[[Run], Proof]
# What is asked where nothing is named.
EVERYWHERE = (INSTALLED, "onnxruntime>=1.15")


def settle_runtimes(request: Request) -> Request:
    """The request with the runtimes that it means: the first is the proof's own, several are a sweep."""
    everywhere = request.verb == "runtimes" and not request.runtimes
    named = expand_runtimes(EVERYWHERE if everywhere else request.runtimes)
    if not named:
        return request
    if len(named) > 1 and not request.steps.cases:
        raise UserError(f"{request.verb} looks at one runtime at a time, and --runtime names {', '.join(named)}")
    if request.verb == "diff" and len(named) > 1:
        # One side each: the first runs the file that is right.
        request = _set_original(request, named[0])
        named = named[1:]
    sweep = _drop_twin(named) if INSTALLED in named else named
    swept = sweep if len(sweep) > 1 or request.verb == "runtimes" else ()
    request = replace(_set_runtime(request, sweep[0]), sweep=swept)
    _install(request)
    return request


def _drop_twin(runtimes: Iterable[str]) -> tuple[str, ...]:
    """Without the release that is installed, which is asked already."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        twin = f"onnxruntime=={version(INSTALLED)}"
    except PackageNotFoundError:  # another build, under another name
        return tuple(runtimes)
    return tuple(runtime for runtime in runtimes if runtime != twin)


def _set_runtime(request: Request, runtime: str) -> Request:
    session = replace(request.verify.session, runtime=None if runtime == INSTALLED else runtime)
    return replace(request, verify=replace(request.verify, session=session))


def _set_original(request: Request, runtime: str) -> Request:
    return replace(request, original=_set_runtime(request, runtime).verify.session)


def _install(request: Request) -> None:
    for session in (request.verify.session, request.original):
        candidate = choose_candidate(session) if session is not None else None
        if isinstance(candidate, RemoteRuntime):
            candidate.install()


@dataclass(frozen=True)
class Visit:
    """A runtime that was asked: its run, and what is to be told of it."""

    run: Run
    result: RuntimeResult


def sweep(run: Run, exported: Proof, executor: Executor, judge: Judge) -> None:
    """Verify the exported file on every runtime, and look for the cause where releases change the verdict."""
    visits = {runtime: _visit(run, runtime, exported, executor, judge) for runtime in run.request.sweep}
    while run.request.steps.bisect and (between := _halve(visits)) is not None:
        visits[between] = _visit(run, between, exported, executor, judge)
    if not run.request.steps.fast:
        _locate(visits, executor, judge)
    run.collected.known = replace(run.collected.known, runtimes=tuple(visit.result for visit in visits.values()))


def _visit(run: Run, runtime: str, exported: Proof, executor: Executor, judge: Judge) -> Visit:
    began = time.perf_counter()
    own = runtime == run.request.sweep[0]
    there = run if own else _send(run, runtime, exported)
    if not own:
        run.collected.progress.stage(f"on {runtime}")
        _verify(there, executor)
    here = exported.environment.onnxruntime if own else None
    proof = judge(there)
    result = RuntimeResult(
        runtime,
        there.collected.version or here,
        findings=_list_gating(proof),
        asked=bool(run.request.runtimes) or own,
        worst_noise_ratio=proof.worst_noise_ratio,
        p50_ms=there.collected.p50_ms,
        seconds=run.collected.seconds.get("verify", 0.0) if own else time.perf_counter() - began,
    )
    return Visit(there, result)


def _verify(there: Run, executor: Executor) -> None:
    try:
        _install(there.request)
        run_stage(Verify(), there, executor)
    except UserError as error:
        if there.request.runtimes:
            raise
        # Nobody asked for this one by name: that it does not start is its own fault.
        there.collected.observe(found("OX303", condense(error)))


def _send(run: Run, runtime: str, exported: Proof) -> Run:
    """A run on another runtime, which begins with the exported file."""
    out = Path(run.request.out) / "runtimes" / runtime.replace("/", "_")
    collected = Collected(known=exported, version=runtime.partition("==")[2] or None)
    return replace(run, request=replace(_set_runtime(run.request, runtime), out=str(out)), collected=collected)


def _list_gating(proof: Proof) -> tuple[Finding, ...]:
    return tuple(finding for finding in proof.findings if finding.weight)


def _halve(visits: Mapping[str, Visit]) -> str | None:
    """The release half-way between the first two that answer differently; None where they are neighbours."""
    from onnxproof.candidates.releases import list_releases

    for before, after in find_changes(visit.result for visit in visits.values())[:1]:
        low, high = Version(str(before.version)), Version(str(after.version))
        between = [version for version in list_releases() if low < version < high]
        return f"onnxruntime=={between[len(between) // 2]}" if between else None
    return None


def _locate(visits: dict[str, Visit], executor: Executor, judge: Judge) -> None:
    """Look for the cause on the worse side of the first change that has one to be found."""
    for pair in find_changes(visit.result for visit in visits.values()):
        worse = max(pair, key=lambda one: [finding.weight for finding in one.findings[:1]])
        visit, stage = visits[worse.runtime], Locate()
        if stage.wanted(visit.run) and not visit.run.collected.proof.blame:
            run_stage(stage, visit.run, executor)
            proof = judge(visit.run)
            shown = [one.reproduction for blame in proof.blame.values() for one in blame.culprits if one.reproduction]
            found = replace(worse, findings=_list_gating(proof), reproduction=next(iter(shown), None))
            visits[worse.runtime] = replace(visit, result=found)
            return
