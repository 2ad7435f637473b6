"""The free run, judged."""

from __future__ import annotations

from onnxproof.policy.rollout import judge_rollout
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, Noise
from onnxproof.proof.rollout import Rollout
from onnxproof.request.thresholds import Policy


def differing(by: float, unexplained: float) -> Comparison:
    noise = Noise("float64", 1e-7, by, by / 1e-7, by / 1e-7, unexplained)
    form = {"baseline_dtype": "float32", "candidate_dtype": "float32", "baseline_shape": (2,), "candidate_shape": (2,)}
    return Comparison("y", "float", **form, size=2, compared=2, max_abs=by, noise=noise, envelope=((1.0, by),))


FINE, DRIFT, WRONG, SILENT = differing(1e-7, 0.1), differing(0.5, 0.9), differing(0.5, 40.0), differing(1e-5, 40.0)


def judge(*steps: Comparison, message: str = "", cases: tuple[CaseResult, ...] = ()):
    return judge_rollout(Rollout("walk", {"out": "in"}, True, steps, 12, message), cases, Policy(), "PyTorch")


def forced(step: int, c: Comparison) -> CaseResult:
    return CaseResult(f"walk/step={step}", "rollout", True, "compared", outputs=(c,))


def test_ox231_the_first_step_that_gates_speaks():
    (finding,) = judge(FINE, FINE, WRONG)
    assert (finding.severity, finding.evidence["step"], finding.evidence["forced"]) == ("block", 2, None)
    assert finding.message.startswith("in free run the sides part at step 2 of 12: y differs by up to 0.5")
    assert judge(FINE, SILENT)[0].severity == "review"
    assert judge(FINE, DRIFT) == [], "rounding that grew"
    assert judge_rollout(None, (), Policy(), "PyTorch") == []


def test_ox231_it_is_the_step_or_the_state():
    (step,) = judge(FINE, WRONG, cases=(forced(1, WRONG), forced(0, FINE)))
    assert "it is the step, not what was carried into it" in step.message
    assert step.where.case == "walk/step=1"
    (state,) = judge(FINE, WRONG, cases=(forced(1, FINE),))
    assert "it is the state that is wrong, not the step" in state.message


def test_ox231_a_step_that_is_refused():
    (finding,) = judge(FINE, message="shapes do not fit")
    assert (finding.severity, finding.evidence["step"]) == ("block", 1)
    assert "onnxruntime refuses it: shapes do not fit" in finding.message
