"""One finding for each code and output, and none that another says better."""

from __future__ import annotations

from onnxproof.findings import Where, found
from onnxproof.policy.merging import Remark, merge_findings


def remark(code: str, weight: float = 1.0, *, output: str = "y", case: str = "c", **options) -> Remark:
    return Remark(found(code, f"{code} in {case}", where=Where(output=output, case=case), **options), weight)


def test_the_worst_case_speaks_and_the_others_are_counted():
    found = merge_findings(remark("OX201", weight, case=f"c{weight}") for weight in (1, 3, 2))
    assert [f.message for f in found] == ["OX201 in c3"]
    assert (found[0].evidence["cases"], found[0].evidence["case_count"]) == (["c1", "c3", "c2"], 3)


def test_a_graver_one_speaks_before_a_larger_one():
    found = merge_findings([remark("OX201", 9.0, severity="review", case="tiny"), remark("OX201", 1.0, case="plain")])
    assert [f.where.case for f in found] == ["plain"]


def test_what_is_milder_gives_way_for_the_same_output_only():
    remarks = [remark("OX201"), remark("OX203"), remark("OX208"), remark("OX203", output="z")]
    assert [(f.code, f.where.output) for f in merge_findings(remarks)] == [("OX201", "y"), ("OX203", "z")]


def test_a_silent_change_gives_way_to_an_inexact_graph_and_rounding_does_not():
    assert [f.code for f in merge_findings([remark("OX202"), remark("OX203"), remark("OX204")])] == ["OX203", "OX204"]


def test_inputs_that_are_not_fair_are_told_beside_a_wrong_answer():
    assert [f.code for f in merge_findings([remark("OX201"), remark("OX209")])] == ["OX201", "OX209"]
