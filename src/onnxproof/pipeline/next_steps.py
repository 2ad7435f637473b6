"""What the planned cases left to search for, and what is worth a closer look."""

from __future__ import annotations

from onnxproof.findings import Finding, found
from onnxproof.pipeline.collected import Record
from onnxproof.policy.policy import Policy, judge, to_locate
from onnxproof.request.request import Job
from onnxproof.search.look import Look


def worth_searching(job: Job, record: Record, policy: Policy) -> bool:
    """A search was asked for, and the planned cases left something to find."""
    if not job.verify.search or not any(case.outputs for case in record.cases.values()):
        return False
    findings = judge(record.findings, list(record.cases.values()), policy)
    return not any(finding.severity == "block" and finding.weight for finding in findings)


def all_known(record: Record, policy: Policy) -> Look:
    """What a search need not find again."""
    findings = [f for f in judge(record.findings, list(record.cases.values()), policy) if f.weight]
    return Look(tuple(findings), record.outputs, record.files, policy)


def search_trouble(error: Exception) -> Finding:
    """A search that fails leaves what the planned cases said."""
    return found(
        "OX007", f"the search ended early: {str(error).splitlines()[0][:300]}", evidence={"error": str(error)[:3000]}
    )


def look(record: Record, policy: Policy) -> Look:
    """What is worth a closer look."""
    findings = to_locate(judge(record.findings, list(record.cases.values()), policy))
    return Look(tuple(findings), record.outputs, record.files, policy)
