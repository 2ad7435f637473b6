"""All stages in this process."""

from __future__ import annotations

import contextlib

from onnxproof.pipeline.collected import Record
from onnxproof.pipeline.next_steps import all_known, look, search_trouble, worth_searching
from onnxproof.policy.policy import Policy
from onnxproof.request.request import Job


def in_process(job: Job, record: Record, policy: Policy, verify: bool) -> None:
    """One stage after the other; a crash of any is a crash of this process."""
    from onnxproof.pipeline import stages

    subject = stages.load_subject(job)
    stages.run_export(job, record.receive, subject)
    if verify and record.artifact is not None:
        stateful = record.stateful
        stages.run_verify(job, record.artifact, frozenset(), record.receive, stateful=stateful, subject=subject)
        if worth_searching(job, record, policy):
            try:
                stages.run_search(
                    job, record.artifact, all_known(record, policy), record.receive, subject, stateful=stateful
                )
            except Exception as error:
                record.findings.append(search_trouble(error))
        closer = look(record, policy)
        if closer.findings:
            with contextlib.suppress(Exception):  # a cause that cannot be found leaves the finding as it is
                stages.run_locate(job, record.artifact, closer, record.receive, subject, stateful=stateful)
    if job.bench is not None and record.artifact is not None:
        from onnxproof.pipeline.benching import run_bench

        run_bench(job, record.artifact, policy, record.receive, subject, stateful=record.stateful)
    if job.evaluate is not None and record.artifact is not None:
        from onnxproof.pipeline.evaluating import run_evaluate

        run_evaluate(job, record.artifact, record.receive, stateful=record.stateful, subject=subject)
