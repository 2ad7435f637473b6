"""What it means that a child died: a finding about its case, or about the stage."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.candidates.roles import CANDIDATE, told
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.pipeline.collected import Collected
from onnxproof.process.supervisor import End


def gravity(collected: Collected) -> Severity:
    """A death of the candidate on a fair input blocks; one of PyTorch or of our own checks is told."""
    case, step = collected.at
    if case is not None and (step != CANDIDATE or case in collected.unfair):
        return "note"
    return "block"


def death_of(end: End, collected: Collected, severity: Severity) -> Finding:
    """The finding that a death is."""
    case, stage = collected.at[0], told(collected.at[1])
    place = f"in case {case}, stage {stage}" if case else f"in stage {stage}"
    evidence = {"signal": end.signal_name, "returncode": end.returncode, "stage": stage, "log": end.log[-2000:]}
    return replace(_told(end, place), where=Where(case=case), evidence=evidence, severity=severity)


def _told(end: End, place: str) -> Finding:
    if end.hung:
        return found("OX002", f"no answer within the time limit {place}; the process was stopped")
    if end.starved or end.signal_name == "SIGKILL":
        return found("OX003", f"out of memory {place}")
    how = f"killed by {end.signal_name}" if end.signal_name else f"ended with exit code {end.returncode}"
    return found("OX001", f"the process was {how} {place}")
