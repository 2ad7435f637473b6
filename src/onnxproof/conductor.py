"""The conductor: subject → artifact → cases → findings → verdict, in this process or in supervised children."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnxproof.artifact.record import Artifact
from onnxproof.blame.record import Blame
from onnxproof.errors import NothingToVerify, OnnxproofError, UserError, listed
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.job import Job
from onnxproof.latency.clockwork import Clockwork, earlier_of
from onnxproof.policy import Policy, judge, to_locate
from onnxproof.policy_quality import check_gates
from onnxproof.proof import Proof
from onnxproof.verified import CaseResult
from onnxproof.worker.look import TRYING, Look
from onnxproof.worker.supervisor import Child, End, nursery

MAX_CHILDREN = 20
"""Deaths after which a run is given up."""
MEASURED = frozenset({"bench", "weigh"})
"""Stages that measure their own process: it is started anew."""


class NotPortable(OnnxproofError):
    """A module in memory that cannot be sent to a child."""


class InternalError(OnnxproofError):
    """Our own bug, with the traceback of the process it happened in."""


@dataclass
class Progress:
    """Who wants to know how far it is."""

    stage: Callable[[str], None] = lambda text: None
    case: Callable[[int, int, str], None] = lambda done, total, name: None
    search: Callable[[Mapping[str, Any]], None] = lambda outcome: None
    rows: Callable[[Mapping[str, Any]], None] = lambda done: None


@dataclass
class Record:
    """What the stages reported so far."""

    progress: Progress
    subject: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    artifact: Artifact | None = None
    findings: list[Finding] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    unfair: frozenset[str] = frozenset()
    lost: set[str] = field(default_factory=set)
    """Cases in which a child died."""
    at: tuple[str | None, str] = (None, "start")
    error: Mapping[str, Any] | None = None
    finished: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Module's output → graph's output."""
    blames: dict[str, Blame] = field(default_factory=dict)
    search: Mapping[str, Any] | None = None
    coverage: Mapping[str, Any] = field(default_factory=dict)
    counterexamples: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Cases that a search found → where their inputs are."""
    clock: Clockwork = field(default_factory=Clockwork)
    """What a benchmark reported."""
    quality: Mapping[str, Any] | None = None

    def receive(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        handler = getattr(self, f"_on_{event['event']}")
        handler(event)

    def _on_stage(self, event: Mapping[str, Any]) -> None:
        self.at = (event["case"], event["stage"])
        if event["case"] is None:
            self.progress.stage(event["stage"])
        elif self.planned and not event["case"].startswith("search/"):
            self.progress.case(len(self.cases), len(self.planned), event["case"])

    def _on_subject(self, event: Mapping[str, Any]) -> None:
        self.subject, self.environment = event["subject"], event["environment"]

    def _on_finding(self, event: Mapping[str, Any]) -> None:
        finding = Finding.from_json(event["finding"])
        if finding not in self.findings:
            self.findings.append(finding)

    def _on_artifact(self, event: Mapping[str, Any]) -> None:
        self.artifact = Artifact.from_json(event["artifact"])

    def _on_plan(self, event: Mapping[str, Any]) -> None:
        self.planned, self.unfair, self.coverage = event["cases"], frozenset(event["unfair"]), event["coverage"]

    def _on_case(self, event: Mapping[str, Any]) -> None:
        result = CaseResult.from_json(event["case"])
        self.cases[result.name] = result
        self.progress.case(len(self.cases), len(self.planned), result.name)

    def _on_outputs(self, event: Mapping[str, Any]) -> None:
        self.outputs = event["pairs"]

    def _on_blame(self, event: Mapping[str, Any]) -> None:
        self.blames[event["case"]] = Blame.from_json(event["blame"])

    def _on_searched(self, event: Mapping[str, Any]) -> None:
        self.search = event["search"]
        self.progress.search(event["search"])

    def _on_found(self, event: Mapping[str, Any]) -> None:
        for earlier in self.files:  # a graver find takes the place of one to be reviewed
            self.cases.pop(earlier, None)
        self.files = {event["case"]: event["file"]}

    def _on_counterexample(self, event: Mapping[str, Any]) -> None:
        self.counterexamples.append(event["counterexample"])

    def _on_latency(self, event: Mapping[str, Any]) -> None:
        self.clock.latency = event["latency"]

    def _on_weigh(self, event: Mapping[str, Any]) -> None:
        self.clock.to_weigh = event

    def _on_weighed(self, event: Mapping[str, Any]) -> None:
        self.clock.weighed[event["contender"]] = event["bytes"]

    def _on_evaluated(self, event: Mapping[str, Any]) -> None:
        self.progress.rows(event)

    def _on_quality(self, event: Mapping[str, Any]) -> None:
        self.quality = event["quality"]

    def _on_trouble(self, event: Mapping[str, Any]) -> None:
        self.progress.stage(f"{event['stage']}: {event['message']}")

    def _on_error(self, event: Mapping[str, Any]) -> None:
        self.error = event

    def _on_done(self, event: Mapping[str, Any]) -> None:
        self.finished = True

    @property
    def stateful(self) -> bool:
        """Whether a forward changes the module's buffers, so that they must be put back."""
        return any(f.code == "OX113" for f in self.findings)


def conduct(job: Job, policy: Policy, *, isolate: bool, verify: bool = True, progress: Progress | None = None) -> Proof:
    """Do a job and judge it."""
    record = Record(progress or Progress())
    _make_folder(job.out)
    earlier = earlier_of(job.bench)
    began = time.perf_counter()
    try:
        work = _in_children if isolate else _in_process
        work(job, record, policy, verify)
    except NotPortable as error:
        record.findings.append(found("OX136", f"{error}; it was proved in this process"))
        _in_process(job, record, policy, verify)
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
        end = _run_child({"stage": "lint", "job": job}, record, job.case_timeout)
        if end is not None:
            record.findings.append(_death(end, record, "block"))
    else:
        from onnxproof.worker import stages

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


# --- in this process ------------------------------------------------------------------------------------------------


def _in_process(job: Job, record: Record, policy: Policy, verify: bool) -> None:
    from onnxproof.worker import stages

    subject = stages.load_subject(job)
    stages.run_export(job, record.receive, subject)
    if verify and record.artifact is not None:
        stateful = record.stateful
        stages.run_verify(job, record.artifact, frozenset(), record.receive, stateful=stateful, subject=subject)
        if _worth_searching(job, record, policy):
            try:
                stages.run_search(
                    job, record.artifact, _all_known(record, policy), record.receive, subject, stateful=stateful
                )
            except Exception as error:
                record.findings.append(_search_trouble(error))
        look = _look(record, policy)
        if look.findings:
            with contextlib.suppress(Exception):  # a cause that cannot be found leaves the finding as it is
                stages.run_locate(job, record.artifact, look, record.receive, subject, stateful=stateful)
    if job.bench is not None and record.artifact is not None:
        from onnxproof.worker.benching import run_bench

        run_bench(job, record.artifact, policy, record.receive, subject, stateful=record.stateful)
    if job.evaluate is not None and record.artifact is not None:
        from onnxproof.worker.evaluating import run_evaluate

        run_evaluate(job, record.artifact, record.receive, stateful=record.stateful, subject=subject)


def _worth_searching(job: Job, record: Record, policy: Policy) -> bool:
    """A search was asked for, and the planned cases left something to find."""
    if not job.verify.search or not any(case.outputs for case in record.cases.values()):
        return False
    findings = judge(record.findings, list(record.cases.values()), policy)
    return not any(finding.severity == "block" and finding.weight for finding in findings)


def _all_known(record: Record, policy: Policy) -> Look:
    """What a search need not find again."""
    findings = [f for f in judge(record.findings, list(record.cases.values()), policy) if f.weight]
    return Look(tuple(findings), record.outputs, record.files, policy)


def _search_trouble(error: Exception) -> Finding:
    """A search that fails leaves what the planned cases said."""
    return found(
        "OX007", f"the search ended early: {str(error).splitlines()[0][:300]}", evidence={"error": str(error)[:3000]}
    )


def _look(record: Record, policy: Policy) -> Look:
    """What is worth a closer look."""
    findings = to_locate(judge(record.findings, list(record.cases.values()), policy))
    return Look(tuple(findings), record.outputs, record.files, policy)


# --- in children ----------------------------------------------------------------------------------------------------


def _in_children(job: Job, record: Record, policy: Policy, verify: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="onnxproof-") as folder, nursery(exporting=job.onnx is None):
        job = _portable(replace(job, verify=replace(job.verify, isolated=True)), Path(folder))
        _export_in_child(job, record)
        if verify and record.artifact is not None:
            _verify_in_children(job, record)
            if _worth_searching(job, record, policy):
                _search_in_child(job, record, _all_known(record, policy))
            look = _look(record, policy)
            if look.findings:
                _locate_in_child(job, record, look)
        if job.evaluate is not None and record.artifact is not None:
            _evaluate_in_child(job, record)
        if job.bench is not None and record.artifact is not None:
            _bench_in_children(job, record, policy, folder)


def _evaluate_in_child(job: Job, record: Record) -> None:
    """Finished shards are on disk: after a death one more child goes on from there."""
    order = {"stage": "evaluate", "job": job, "artifact": record.artifact, "stateful": record.stateful}
    end = _run_child(order, record, job.case_timeout)
    if end is not None and not end.hung:
        end = _run_child(order, record, job.case_timeout)
    if end is not None:
        record.findings.append(_death(end, record, "block"))


def _bench_in_children(job: Job, record: Record, policy: Policy, folder: str) -> None:
    """Timing in one child; then the memory of each contender in one of its own, which costs only that number if it fails."""
    order = {
        "stage": "bench",
        "job": job,
        "artifact": record.artifact,
        "policy": policy,
        "stateful": record.stateful,
        "weights": record.subject.get("weights"),
        "folder": folder,
    }
    end = _run_child(order, record, job.case_timeout)
    if end is not None:
        case, stage = record.at
        record.findings.append(_death(end, record, _gravity(record, case, stage)))
        return
    for name in (record.clock.to_weigh or {}).get("contenders", ()):
        with contextlib.suppress(InternalError, UserError):
            _run_child({**order, "stage": "weigh", "contender": name}, record, job.case_timeout)


def _locate_in_child(job: Job, record: Record, look: Look) -> None:
    """A child of its own, since it exports again; what it cannot find leaves the findings as they are."""
    order = {"stage": "locate", "job": job, "artifact": record.artifact, "look": look, "stateful": record.stateful}
    with contextlib.suppress(InternalError, UserError):
        _run_child(order, record, job.case_timeout)


def _search_in_child(job: Job, record: Record, look: Look) -> None:
    """An input that kills the child is what the search was for: it is kept."""
    order = {"stage": "search", "job": job, "artifact": record.artifact, "look": look, "stateful": record.stateful}
    try:
        end = _run_child(order, record, job.case_timeout)
    except (InternalError, UserError) as error:
        record.findings.append(_search_trouble(error))
        return
    if end is None:
        return
    case, stage = record.at
    death = _death(end, record, "note" if case is None else _gravity(record, case, stage))
    trying = Path(str(job.verify.counterexamples)) / TRYING
    if case is not None and trying.is_file():
        kept = trying.with_name(f"{record.subject.get('name', 'model')}-{death.code}.npz")
        trying.replace(kept)
        death = replace(death, evidence={**death.evidence, "file": str(kept)})
    record.findings.append(death)


def _portable(job: Job, folder: Path) -> Job:
    """A module in memory goes through a file."""
    if job.memory is None:
        return job
    import torch

    path = folder / "subject.pt"
    try:
        torch.save(job.memory, path)
    except Exception as error:
        raise NotPortable(f"the module cannot be pickled ({type(error).__name__}: {error})") from error
    return replace(job, memory=None, pickled=str(path))


def _run_child(order: Mapping[str, Any], record: Record, limit: float) -> End | None:
    """Run one child to its end; None when it ended as it should."""
    record.finished, record.error, record.at = False, None, (None, "start")
    child = Child(order, fresh=order["stage"] in MEASURED)
    try:
        for event in child.events(limit):
            record.receive(event)
        end = child.end()
    finally:
        child.stop()
    if record.error is not None:
        _raise(record.error, end)
    return None if record.finished else end


def _raise(error: Mapping[str, Any], end: End) -> None:
    from onnxproof import errors

    if error["kind"] == "user":
        raise getattr(errors, error["type"], UserError)(error["message"])
    if error["kind"] == "interrupted":
        raise KeyboardInterrupt
    if error["kind"] != "memory":
        raise InternalError(f"{error['message']}\n{error['traceback']}")


def _export_in_child(job: Job, record: Record) -> None:
    end = _run_child({"stage": "export", "job": job}, record, job.export_timeout)
    if end is None:
        return
    death = _death(end, record, "block")
    if job.export.exporter == "auto" and job.onnx is None and record.at[1] == "export" and not end.hung:
        again = replace(job, export=replace(job.export, exporter="torchscript"))
        if (
            _run_child({"stage": "export", "job": again}, record, job.export_timeout) is None
            and record.artifact is not None
        ):
            message = f"the default exporter killed its process ({end.signal_name or 'it died'}); TorchScript was used"
            record.findings.append(found("OX107", message, evidence={"signal": end.signal_name}))
            return
    record.findings.append(death)


def _verify_in_children(job: Job, record: Record) -> None:
    """Cases in one child after another: a death costs its case only."""
    for _ in range(MAX_CHILDREN):
        done = frozenset(record.cases) | record.lost
        order = {
            "stage": "verify",
            "job": job,
            "artifact": record.artifact,
            "done": done,
            "stateful": record.stateful,
            "weights": record.subject.get("weights"),
        }
        end = _run_child(order, record, job.case_timeout)
        if end is None:
            return
        case, stage = record.at
        record.findings.append(_death(end, record, _gravity(record, case, stage)))
        if case is None:
            return
        record.lost.add(case)
        if set(record.planned) <= record.cases.keys() | record.lost:
            return
    left = [name for name in record.planned if name not in record.cases and name not in record.lost]
    if left:
        message = f"given up after {MAX_CHILDREN} deaths: {len(left)} of {len(record.planned)} cases were not run"
        record.findings.append(found("OX005", message, severity="review", evidence={"cases": left}))


def _gravity(record: Record, case: str | None, stage: str) -> Severity:
    """A death of the candidate on a fair input blocks; one of PyTorch or of our own checks is told."""
    if case is not None and (stage != "onnxruntime" or case in record.unfair):
        return "note"
    return "block"


def _death(end: End, record: Record, severity: Severity) -> Finding:
    case, stage = record.at
    place = f"in case {case}, stage {stage}" if case else f"in stage {stage}"
    where = Where(case=case)
    evidence = {"signal": end.signal_name, "returncode": end.returncode, "stage": stage, "log": end.log[-2000:]}
    if end.hung:
        return found(
            "OX002",
            f"no answer within the time limit {place}; the process was stopped",
            where=where,
            evidence=evidence,
            severity=severity,
        )
    if record.error is not None or end.signal_name == "SIGKILL":
        return found("OX003", f"out of memory {place}", where=where, evidence=evidence, severity=severity)
    how = f"killed by {end.signal_name}" if end.signal_name else f"ended with exit code {end.returncode}"
    return found("OX001", f"the process was {how} {place}", where=where, evidence=evidence, severity=severity)


def require_something(proof: Proof) -> None:
    """Raise where the proof has nothing to say but that nothing was compared."""
    blocks = [f for f in proof.findings if f.severity == "block" and f.accepted is None]
    if blocks and all(f.code == "OX004" for f in blocks):
        raise NothingToVerify(blocks[0].message)
