"""What is said about a lower precision that was chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from onnxproof.findings import found
from onnxproof.policy.precision import bound_share, judge_precision
from onnxproof.proof.artifact import Artifact, Precision
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, PrecisionCost
from onnxproof.proof.environment import Environment
from onnxproof.proof.proof import Proof
from onnxproof.proof.quality import Quality
from onnxproof.proof.subject import SubjectFacts
from onnxproof.request.thresholds import QualityPolicy

CHOSEN = Precision("int8 static", "int8 static, 3 of 3 Gemms", declared=True)


def proof(cost: PrecisionCost | None, profile: str = "normal", precision: Precision | None = CHOSEN, **more) -> Proof:
    compared = Comparison("y", "float", "float32", "float32", (2, 2), (2, 2), cost=cost)
    case = CaseResult("c", profile, True, "compared", {}, outputs=(compared,), seconds={}, sizes={})
    artifact = Artifact(path="m.onnx", exporter="", opset=20, sha256="", inputs=(), outputs=(), precision=precision)
    return replace(Proof(SubjectFacts(), artifact, Environment(), (case,), ()), **more)


def told(given: Proof) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in judge_precision(given, QualityPolicy())]


def test_without_data_a_person_has_to_look():
    assert told(proof(PrecisionCost(35.0, rows=10))) == [("OX227", "note"), ("OX228", "review")]
    assert told(proof(PrecisionCost(35.0), quality=Quality("multiclass"))) == [("OX227", "note")]


def test_what_was_not_chosen_or_changes_nothing_needs_no_word():
    assert told(proof(PrecisionCost(35.0), precision=None)) == []
    assert told(proof(PrecisionCost(35.0), precision=replace(CHOSEN, declared=False))) == []
    assert told(proof(PrecisionCost(140.0))) == []
    assert told(proof(None)) == []


@pytest.mark.parametrize(
    ("changed", "rows", "severity"),
    [
        (0, 1000, "note"),
        (10, 1000, "note"),
        (15, 1000, "review"),
        (0, 20, "review"),
        (90, 1000, "review"),
        (600, 1000, "block"),
    ],
)
def test_unlabelled_data_say_how_many_decisions_change(changed, rows, severity):
    findings = [
        one for one in told(proof(PrecisionCost(30.0, changed=changed, rows=rows), "data")) if one[0] == "OX228"
    ]
    assert findings == [("OX228", severity)]


def test_a_file_that_is_wrong_is_not_called_computed_right():
    judged = [judge_precision(proof(PrecisionCost(35.0)), QualityPolicy(), right=right) for right in (True, False)]
    assert ["computed right" in list(findings)[-1].message for findings in judged] == [True, False]


def test_an_overflow_blocks_on_ordinary_values_only():
    assert ("OX230", "block") in told(proof(PrecisionCost(-300.0, lost=3)))
    assert told(proof(PrecisionCost(-300.0, lost=3), "large")) == []


@pytest.mark.parametrize(
    ("introduced", "inherited", "said"),
    [(-300.0, 300.0, "at first"), (70.0, -300.0, "because an input is beyond what the file takes"), (70.0, 70.0, "")],
)
def test_an_overflow_is_told_with_where_it_begins(introduced, inherited, said):
    node = {"node": "first", "introduced": introduced, "inherited": inherited}
    seen = proof(PrecisionCost(-300.0, lost=3), findings=(found("OX232", "", evidence={"nodes": [node]}),))
    message = next(one.message for one in judge_precision(seen, QualityPolicy()) if one.code == "OX230")
    assert message.partition("precision")[2] == f", {said}: 3 elements".replace(", :", ":")


@pytest.mark.parametrize(("count", "of"), [(0, 10), (10, 10), (1, 540), (37, 1000), (3, 7), (999, 1000)])
def test_the_interval_of_a_share_is_exact(count, of):
    ends = stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    assert bound_share(count, of) == pytest.approx((ends.low, ends.high), abs=1e-9)
