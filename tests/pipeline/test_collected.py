"""A death is a finding: which code, how grave, and where."""

from __future__ import annotations

import pytest

from onnxproof.pipeline.collected import Collected
from onnxproof.process.supervisor import End


def at(case: str | None, step: str, unfair: frozenset[str] = frozenset()) -> Collected:
    return Collected(at=(case, step), unfair=unfair)


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (End(-11, hung=False, log=""), "OX001", "was killed by SIGSEGV"),
        (End(3, hung=False, log=""), "OX001", "was ended with exit code 3"),
        (End(-9, hung=True, log=""), "OX002", "no answer within the time limit"),
        (End(-9, hung=False, log=""), "OX003", "out of memory"),
        (End(0, hung=False, log="", starved=True), "OX003", "out of memory"),
    ],
    ids=["signal", "exit", "hung", "killed by the system", "starved"],
)
def test_how_it_ended_says_what_it_was(end, code, told):
    finding = at("batch=2/large/seed=0", "candidate").death(end)
    assert finding.code == code
    assert told in finding.message
    assert finding.message.split(";")[0].endswith("in case batch=2/large/seed=0, stage onnxruntime")
    assert finding.where.case == "batch=2/large/seed=0"


def test_outside_of_a_case_the_stage_is_named_and_the_end_of_the_log_is_kept():
    finding = at(None, "export").death(End(-6, hung=False, log="x" * 3000 + "the end"), "note")
    assert finding.message.endswith("in stage export")
    assert (finding.where.case, finding.severity) == (None, "note")
    assert finding.evidence["log"].endswith("the end")
    assert len(finding.evidence["log"]) == 2000
    assert (finding.evidence["signal"], finding.evidence["returncode"]) == ("SIGABRT", -6)


@pytest.mark.parametrize(
    ("collected", "severity"),
    [
        (at("a", "candidate"), "block"),
        (at("a", "candidate", frozenset({"a"})), "note"),
        (at("a", "baseline"), "note"),
        (at("a", "truth"), "note"),
        (at(None, "export"), "block"),
    ],
    ids=["fair", "unfair", "baseline", "truth", "no case"],
)
def test_only_what_is_the_candidates_fault_or_stops_the_run_blocks(collected, severity):
    assert collected.gravity() == collected.death(End(1, hung=False, log="")).severity == severity
