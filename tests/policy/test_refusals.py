"""What only onnxruntime refuses: one finding per reason."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.findings import Where, look_up
from onnxproof.policy.refusals import judge_refusals
from onnxproof.proof.case_result import CaseResult

ODD = CaseResult("batch=1/normal", "normal", True, "failed", message="it did not want to")
ANSWERED = replace(ODD, name="batch=4/normal", status="compared", message="")


def fixed(size, name="x"):
    message = f"Got invalid dimensions for input: {name} for the following indices\n index: 0 Got: {size} Expected: 4"
    return replace(ODD, name=f"batch={size}/normal", message=message)


def test_ox221_a_refusal_that_says_nothing_about_its_node():
    assert [f.code for f in judge_refusals([ODD])] == ["OX221"]
    known = replace(ODD, message="Non-zero status code returned while running Squeeze node. Name:'s'")
    assert [f.code for f in judge_refusals([known])] == ["OX223"]


def test_cases_refused_for_one_reason_are_one_finding():
    rows = [replace(ODD, name=str(n), message=f"row {n} is too long\nmore") for n in (7, 8)]
    (finding,) = judge_refusals([*rows, ANSWERED], "TorchScript")
    assert finding.message == "onnxruntime refuses 2 cases that TorchScript answers: row 7 is too long"
    assert finding.evidence == {"cases": ["7", "8"], "error": "row 7 is too long\nmore"}
    assert len(judge_refusals([ODD, *rows])) == 2
    assert judge_refusals([ANSWERED, replace(ODD, status="rejected")]) == []


def test_a_case_without_a_size_of_one_speaks():
    """There the cause can be found: a captured program is none of a single row."""
    sizes = ({"batch": 1, "time": 1}, {"batch": 2, "time": 1}, {"batch": 2, "time": 3}, {"batch": 5, "time": 3})
    rows = [replace(ODD, name=str(n), sizes=one) for n, one in enumerate(sizes)]
    (finding,) = judge_refusals(rows)
    assert finding.where.case == "2"
    unfair = replace(rows[2], fair=False)
    (finding,) = judge_refusals([rows[0], unfair])
    assert finding.where.case == "0"


def test_ox222_a_size_that_is_fixed_is_named():
    first, other = judge_refusals([fixed(1), fixed(7), fixed(7, "mask"), ANSWERED])
    refused = "onnxruntime refuses 2 cases of other sizes that PyTorch answers"
    assert (first.code, first.message) == ("OX222", f"the artifact fixes dimension 0 of x to 4: {refused}")
    assert "of mask to 4" in other.message


def test_the_place_is_that_of_the_first_case_and_unfair_ones_are_a_note():
    placed = replace(ODD, where=Where(node="n", file="m.py", line=3))
    (finding,) = judge_refusals([placed])
    assert finding.where == Where(case="batch=1/normal", node="n", file="m.py", line=3)
    assert finding.severity == look_up("OX221").severity
    assert [f.severity for f in judge_refusals([replace(placed, fair=False)])] == ["note"]


def test_where_every_case_is_refused_the_help_is_another():
    entry = look_up("OX222")
    (some,), (every,) = judge_refusals([fixed(1), ANSWERED]), judge_refusals([fixed(1)])
    assert (some.help, every.help) == (entry.help, entry.never or entry.help)


def test_a_size_that_only_broadcasting_takes_is_none_that_callers_vary():
    one, four, seven = ({"batch": size} for size in (1, 4, 7))
    rows = [replace(fixed(1), sizes=one), replace(ANSWERED, sizes=four)]
    rejected = replace(ODD, name="batch=7/normal", status="rejected", sizes=seven)
    (spread,) = judge_refusals([*rows, rejected])
    assert (spread.code, spread.severity) == ("OX222", "note")
    (varied,) = judge_refusals([*rows, replace(fixed(7), sizes=seven)])
    assert varied.severity == "block"
    (unknown,) = judge_refusals(rows)
    assert unknown.severity == "block"
