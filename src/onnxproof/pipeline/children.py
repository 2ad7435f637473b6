"""Stages in supervised children: a death costs its case, and not the user's process."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.errors import UserError
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.pipeline.collected import InternalError, NotPortable, Record
from onnxproof.pipeline.next_steps import all_known, look, search_trouble, worth_searching
from onnxproof.policy.policy import Policy
from onnxproof.process.supervisor import Child, End, nursery
from onnxproof.request.request import Job
from onnxproof.search.look import TRYING, Look

MAX_CHILDREN = 20
"""Deaths after which a run is given up."""
SETTING_UP = 60.0
"""Seconds that a child has in any case until it comes to its first case: a limit for cases says nothing about imports and weights."""
MEASURED = frozenset({"bench", "weigh"})
"""Stages that measure their own process: it is started anew."""


def in_children(job: Job, record: Record, policy: Policy, verify: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="onnxproof-") as folder, nursery(exporting=job.onnx is None):
        job = _portable(replace(job, verify=replace(job.verify, isolated=True)), Path(folder))
        _export_in_child(job, record)
        if verify and record.artifact is not None:
            _verify_in_children(job, record)
            if worth_searching(job, record, policy):
                _search_in_child(job, record, all_known(record, policy))
            closer = look(record, policy)
            if closer.findings:
                _locate_in_child(job, record, closer)
        if job.evaluate is not None and record.artifact is not None:
            _evaluate_in_child(job, record)
        if job.bench is not None and record.artifact is not None:
            _bench_in_children(job, record, policy, folder)


def _evaluate_in_child(job: Job, record: Record) -> None:
    """Finished shards are on disk: after a death one more child goes on from there."""
    order = {"stage": "evaluate", "job": job, "artifact": record.artifact, "stateful": record.stateful}
    end = run_child(order, record, job.case_timeout)
    if end is not None and not end.hung:
        end = run_child(order, record, job.case_timeout)
    if end is not None:
        record.findings.append(death_of(end, record, "block"))


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
    end = run_child(order, record, job.case_timeout)
    if end is not None:
        case, stage = record.at
        record.findings.append(death_of(end, record, _gravity(record, case, stage)))
        return
    for name in (record.clock.to_weigh or {}).get("contenders", ()):
        with contextlib.suppress(InternalError, UserError):
            run_child({**order, "stage": "weigh", "contender": name}, record, job.case_timeout)


def _locate_in_child(job: Job, record: Record, closer: Look) -> None:
    """A child of its own, since it exports again; what it cannot find leaves the findings as they are."""
    order = {"stage": "locate", "job": job, "artifact": record.artifact, "look": closer, "stateful": record.stateful}
    with contextlib.suppress(InternalError, UserError):
        run_child(order, record, job.case_timeout)


def _search_in_child(job: Job, record: Record, closer: Look) -> None:
    """An input that kills the child is what the search was for: it is kept."""
    order = {"stage": "search", "job": job, "artifact": record.artifact, "look": closer, "stateful": record.stateful}
    try:
        end = run_child(order, record, job.case_timeout)
    except (InternalError, UserError) as error:
        record.findings.append(search_trouble(error))
        return
    if end is None:
        return
    case, stage = record.at
    death = death_of(end, record, "note" if case is None else _gravity(record, case, stage))
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


def run_child(order: Mapping[str, Any], record: Record, limit: float) -> End | None:
    """Run one child to its end; None when it ended as it should."""
    record.finished, record.error, record.at = False, None, (None, "start")
    child = Child(order, fresh=order["stage"] in MEASURED)
    try:
        for event in child.events(lambda: limit if record.at[0] is not None else max(limit, SETTING_UP)):
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
    end = run_child({"stage": "export", "job": job}, record, job.export_timeout)
    if end is None:
        return
    death = death_of(end, record, "block")
    if job.export.exporter == "auto" and job.onnx is None and record.at[1] == "export" and not end.hung:
        again = replace(job, export=replace(job.export, exporter="torchscript"))
        if (
            run_child({"stage": "export", "job": again}, record, job.export_timeout) is None
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
        end = run_child(order, record, job.case_timeout)
        if end is None:
            return
        case, stage = record.at
        record.findings.append(death_of(end, record, _gravity(record, case, stage)))
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


def death_of(end: End, record: Record, severity: Severity) -> Finding:
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
