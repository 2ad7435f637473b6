"""The worker of verification: what it emits, what it leaves out, and what a refusal becomes."""

from __future__ import annotations

from onnxproof.pipeline import events
from onnxproof.pipeline.verifying import run_verify
from onnxproof.pipeline.workshop import Workshop
from pipeline.small import UNKNOWN_OPERATOR, Told, artifact_of, twice


def verified(request, artifact, done=frozenset()) -> Told:
    told = Told()
    run_verify(told, request, artifact, done, stateful=False, shop=Workshop())
    return told


def test_the_plan_comes_before_its_cases_and_what_is_done_is_not_run_again(tmp_path):
    request, artifact = twice(batch_sizes=(1, 2), out=str(tmp_path)), artifact_of(tmp_path)
    first = verified(request, artifact)
    (plan,) = first.of(events.Planned)
    ran = [event.result.name for event in first.of(events.Compared)]
    assert ran == list(plan.cases)
    assert set(plan.unfair) == {name for name in plan.cases if "huge" in name or "largest" in name or "finite" in name}
    assert [event.outputs for event in first.of(events.Paired)] == [{"output": "y"}]
    assert first.index(plan) < first.index(first.of(events.Compared)[0])
    second = verified(request, artifact, frozenset(ran[2:]))
    assert [event.result.name for event in second.of(events.Compared)] == ran[:2]
    assert second.of(events.Planned) == [plan]


def test_a_step_is_entered_before_it_is_taken(tmp_path):
    told = verified(twice(batch_sizes=(1,), out=str(tmp_path)), artifact_of(tmp_path))
    case = told.of(events.Compared)[0].result.name
    steps = [event.stage for event in told.of(events.Entered) if event.case == case]
    assert steps[:4] == ["inputs", "baseline", "candidate", "truth"]
    assert [event.stage for event in told.of(events.Entered) if event.case is None][:2] == ["import", "session"]


def test_a_file_that_is_refused_is_a_finding_and_no_case_is_run(tmp_path):
    told = verified(twice(batch_sizes=(1,), out=str(tmp_path)), artifact_of(tmp_path, UNKNOWN_OPERATOR))
    (observed,) = told.of(events.Observed)
    assert observed.finding.severity == "block"
    assert "NoSuchOperator" in observed.finding.message
    assert told.of(events.Compared) == []
