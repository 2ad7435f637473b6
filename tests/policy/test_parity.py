"""One output of one case: what is said about its form, its NaN, its values, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.policy.parity import exceeds_noise, find_nothing_finite, find_objection, list_remarks
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, Exactness, Noise, Pattern
from onnxproof.request.thresholds import Policy, Tolerance

FLOAT = Comparison("y", "float", "float32", "float32", (2, 4), (2, 4), 8, 8, 0.0)
WHOLE = replace(FLOAT, kind="discrete", baseline_dtype="int64", candidate_dtype="int64", max_abs=None)
QUIET = Noise("float64", 1e-8, 2e-8, 2.0, 3.0)
LOUD = replace(QUIET, ratio=50.0, worst_ratio=80.0)
CASE = CaseResult("batch=2/normal/seed=0", "normal", True, "compared", sizes={"batch": 2})


def told(c, policy=None, **case):
    said = list(list_remarks(replace(CASE, **case), c, policy or Policy(), "PyTorch"))
    return [(remark.finding.code, remark.finding.severity) for remark in said], [r.finding.message for r in said]


@pytest.mark.parametrize(
    ("c", "codes", "message"),
    [
        (FLOAT, [], None),
        (replace(FLOAT, candidate_dtype="float64"), ["OX214"], "y is float32 in PyTorch and float64 in the artifact"),
        (replace(FLOAT, candidate_shape=(2, 5)), ["OX215"], "y has shape [2, 4] in PyTorch and [2, 5] in onnxruntime"),
        (
            replace(FLOAT, pattern=Pattern(0, 3, 3)),
            ["OX205"],
            "y: 3 of 8 elements are NaN or infinite on one side only (PyTorch has 0, onnxruntime 3)",
        ),
        (replace(FLOAT, pattern=Pattern(0, 3, 3, 0)), ["OX208"], "y: NaN or infinity appears where rounding decides"),
        (replace(WHOLE, mismatched=2), ["OX207"], "y: 2 of 8 values differ"),
        (
            replace(WHOLE, mismatched=2, unexplained_mismatches=0),
            ["OX208"],
            "y: 2 of 8 values differ where the margin is below the rounding noise",
        ),
        (
            replace(WHOLE, mismatched=2, swapped_with="z"),
            ["OX220"],
            "the artifact's y equals PyTorch's z: the outputs look swapped",
        ),
        (
            replace(FLOAT, max_abs=0.5, noise=LOUD),
            ["OX201"],
            "y differs by up to 0.5 (80 times PyTorch's own rounding error): more than the tolerance, and not rounding",
        ),
        (replace(FLOAT, max_abs=0.5, noise=LOUD, swapped_with="z"), ["OX220"], None),
        (
            replace(FLOAT, max_abs=1e-5, noise=LOUD),
            ["OX202"],
            "y is within the tolerance (max 1e-05) but 80 times PyTorch's own rounding error: a silent change, not rounding",
        ),
        (replace(FLOAT, max_abs=1e-39, noise=LOUD), [], None),
        (replace(FLOAT, max_abs=1e-5, noise=LOUD, exactness=Exactness(1e-5, 1e-7, 100.0)), ["OX203"], None),
        (replace(FLOAT, max_abs=1e-5, noise=QUIET), [], None),
        (
            replace(FLOAT, max_abs=0.5, noise=QUIET),
            ["OX204"],
            "y differs by up to 0.5, more than the tolerance, and rounding explains it: PyTorch itself is 1e-08 (rms) from the float64 truth",
        ),
        (
            replace(FLOAT, max_abs=0.5, noise=replace(QUIET, baseline_rms=0.0)),
            ["OX204"],
            "y differs by up to 0.5, more than the tolerance, and rounding explains it: legal roundings of the module move it as far",
        ),
    ],
)
def test_each_code_in_its_words(c, codes, message):
    said, messages = told(c)
    assert [code for code, _ in said] == codes
    assert message is None or messages == [message]


def test_nan_that_rounding_decides_does_not_hide_values_that_differ():
    both = replace(FLOAT, max_abs=0.5, noise=LOUD, pattern=Pattern(0, 1, 1, 0))
    assert [code for code, _ in told(both)[0]] == ["OX208", "OX201"]


def test_a_promise_binds_where_rounding_explains_it():
    explained = replace(FLOAT, max_abs=0.5, noise=QUIET)
    assert told(explained)[0] == [("OX204", "note")]
    assert told(explained, Policy(tolerance=Tolerance(promised=True)))[0] == [("OX204", "review")]


def test_what_is_not_fair_does_not_gate():
    wrong = replace(FLOAT, max_abs=0.5, noise=LOUD)
    said, messages = told(wrong, fair=False, profile="extreme")
    assert said == [("OX209", "note")]
    assert messages[0].startswith("on extreme inputs, which are outside the fair range: y differs")
    assert told(wrong, fair=False, sizes={"batch": 0})[1][0].startswith("on an empty batch, which gates only if")
    assert told(replace(wrong, noise=QUIET), fair=False) == ([], [])
    assert told(wrong, profile="denormal")[0] == [("OX201", "review")]


def test_an_objection_is_what_would_gate():
    assert find_objection(replace(FLOAT, max_abs=0.5, noise=LOUD), Policy(), "PyTorch").startswith(
        "y differs by up to 0.5"
    )
    assert find_objection(replace(FLOAT, max_abs=0.5, noise=QUIET), Policy(), "PyTorch") is None


def test_unknown_noise_explains_nothing():
    assert exceeds_noise(replace(FLOAT, max_abs=1e-9), 10.0)
    assert not exceeds_noise(FLOAT, 10.0)
    assert not exceeds_noise(replace(FLOAT, max_abs=0.5, noise=QUIET), 3.0)
    assert exceeds_noise(replace(FLOAT, max_abs=0.5, noise=QUIET), 2.9)
    assert exceeds_noise(replace(FLOAT, max_abs=0.5, noise=replace(QUIET, unexplained=1.1)), 1e9)
    assert not exceeds_noise(replace(FLOAT, max_abs=0.5, noise=replace(LOUD, unexplained=0.9)), 0.0)


def test_an_output_of_which_nothing_was_compared():
    def severities(*outputs, **case):
        return [f.severity for f in find_nothing_finite([replace(CASE, outputs=(one,), **case) for one in outputs])]

    nothing, empty = replace(FLOAT, compared=0), replace(FLOAT, size=0, compared=0)
    assert severities(nothing, empty) == ["review"]
    assert severities(empty, empty) == ["review"], "nothing was compared at all"
    assert severities(empty, replace(FLOAT, output="other")) == ["note"]
    assert severities(nothing, FLOAT) == severities(nothing, fair=False) == []
