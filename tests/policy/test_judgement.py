"""What is judged follows from the catalogue: a code that only it knows is treated by its fields."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.findings import Entry, Where, decide_verdict, found
from onnxproof.findings.catalogue import load_entries
from onnxproof.policy.baseline_findings import list_known
from onnxproof.policy.judgement import judge, judge_case, to_locate
from onnxproof.request.thresholds import LatencyPolicy, Policy
from proofs import make_case

INVENTED = "OX299"


@pytest.fixture
def invent(monkeypatch):
    """Put an entry into the catalogue for one test."""

    def enter(**fields):
        entry = Entry(INVENTED, "invented", "block", "what", "why", "fix", **fields)
        monkeypatch.setitem(load_entries(entry.family), INVENTED, entry)
        return found(INVENTED, "m", where=Where(output="output", case="c"))

    return enter


def test_what_stages_observed_stays_and_what_was_judged_is_judged_again(invent):
    assert judge([invent()], (), Policy()) == [invent()]
    assert judge([invent(judged=True)], (), Policy()) == []


def test_of_an_output_that_is_random_nothing_else_is_said(invent):
    wrong = make_case("batch=2/normal/seed=0", 1.0, 0)
    assert {f.code for f in judge([invent()], [wrong], Policy())} == {INVENTED, "OX201"}
    assert {f.code for f in judge([invent(random=True)], [wrong], Policy())} == {INVENTED}


def test_a_case_is_looked_at_where_the_code_can_be_located(invent):
    assert to_locate([invent()]) == []
    finding = invent(locatable=True)
    assert to_locate([finding]) == [finding]
    assert to_locate([replace(finding, severity="note")]) == []


def test_what_is_unacceptable_gates_whatever_the_policy_says(invent):
    finding = invent()
    accepting, knowing = Policy(accept={INVENTED: "fine"}), Policy(known=list_known([finding]))
    for policy in (accepting, knowing):
        assert decide_verdict(judge([finding], (), policy)) == "ship"
    finding = invent(unacceptable="never")
    for policy in (accepting, knowing):  # made while it was acceptable: the judgement itself holds
        judged = judge([finding], (), policy)
        assert decide_verdict(judged) == "block"
        assert (judged[0].accepted, judged[0].known) == (None, None)
    assert list_known([finding]) == ()


def test_the_gravest_comes_first_and_an_earlier_excuse_is_forgotten():
    findings = [found("OX102", "m"), found("OX218", "m"), found("OX103", "m").accept("once")]
    assert [f.code for f in judge(findings, (), Policy())] == ["OX218", "OX103", "OX102"]


def test_one_case_alone_says_nothing_about_limits_or_about_what_all_cases_lack():
    case = make_case("batch=2/normal/seed=0", 0.0, 0)
    empty = replace(case, outputs=tuple(replace(c, compared=0) for c in case.outputs))
    policy = Policy(latency=LatencyPolicy(min_speedup=2.0))
    assert {f.code for f in judge((), [empty], policy)} == {"OX206", "OX402"}
    assert judge_case(empty, policy) == []
    assert [f.code for f in judge_case(make_case("batch=2/normal/seed=0", 1.0, 0), policy)] == ["OX201"]


def test_ox206_where_every_output_is_empty_nothing_was_compared():
    case = make_case("batch=0/normal/seed=0", 0.0, 0)
    empty = replace(case.outputs[0], size=0, compared=0)
    beside = replace(case, outputs=(replace(empty, output="boxes"), *case.outputs))
    assert [f.severity for f in judge((), [beside], Policy()) if f.code == "OX206"] == ["note"]
    alone = replace(case, outputs=(empty,))
    assert decide_verdict(judge((), [alone], Policy())) == "review"


def test_ox004_cases_without_outputs_are_never_a_pass():
    """Also in a proof that somebody wrote: what the run would have observed is judged."""
    empty = replace(make_case("batch=2/normal/seed=0", 0.0, 0), outputs=())
    once = judge([], [empty], Policy())
    assert [(f.code, f.severity) for f in once] == [("OX004", "block")]
    assert judge(once, [empty], Policy()) == once
    assert judge([], (), Policy()) == []
