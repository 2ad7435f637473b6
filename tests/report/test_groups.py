"""Cases by their sizes: one grouping, whoever shows it."""

from __future__ import annotations

import re
from dataclasses import replace

from onnxproof.proof.case_result import CaseResult
from onnxproof.report.groups import group_cases, sort_naturally
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import render_markdown
from onnxproof.report.notebook import render_notebook
from onnxproof.report.text import render
from proofs import make_case, make_proof


def proof_of(*cases: CaseResult):
    return replace(made := make_proof(cases=0), cases=cases).judged(made.policy)


def sized(name: str, error: float = 3e-8, **sizes: int) -> CaseResult:
    return replace(make_case("batch=1/normal/seed=0", error, 0), name=name, sizes=sizes)


def test_groups_come_by_size_and_those_without_one_last():
    data = replace(sized("data/rows=0-3"), profile="data")
    cases = [sized(f"a{batch}", batch=batch) for batch in (32, 7, 1)]
    found = group_cases(proof_of(data, *cases, sized("static/normal/seed=0")))
    assert [group.sizes for group in found] == ["batch=1", "batch=7", "batch=32", "data", "static"]
    assert sort_naturally("batch=7,seq=9") < sort_naturally("batch=7,seq=10")


def test_sizes_are_data_and_not_read_from_names():
    (one,) = group_cases(proof_of(sized("batch=3/normal/seed=0", batch=5), sized("another", batch=5)))
    assert (one.sizes, one.cases) == ("batch=5", 2)


def test_a_group_has_the_worst_numbers_of_what_gates_and_counts_the_rest():
    bad = sized("bad", 3e-2, batch=2)
    unfair = replace(sized("unfair", 30.0, batch=2), fair=False)
    refused = replace(sized("refused", batch=2), status="failed", outputs=())
    rejected = replace(sized("rejected", batch=2), status="rejected", outputs=())
    (one,) = group_cases(proof_of(bad, unfair, refused, rejected))
    assert 1e-3 < one.max_abs < 1
    assert (one.cases, one.refused, one.rejected, one.state) == (4, 1, 1, "block")


def test_of_very_many_sizes_the_worst_come_first():
    cases = [sized(f"c{batch}", 3e-2 if batch == 20 else 3e-8, batch=batch) for batch in range(1, 31)]
    assert group_cases(proof_of(*cases))[0].sizes == "batch=20"


def test_every_report_shows_the_same_groups():
    proof = proof_of(*(sized(f"c{batch}", batch=batch) for batch in (9, 1, 4)))
    order = [group.sizes for group in group_cases(proof)]
    shown = (render(proof), render_markdown(proof).replace("&#61;", "="), render_notebook(proof))
    assert all(re.findall(r"batch=\d+", text) == order for text in shown)
    assert set(re.findall(r"\.(batch=\d+)\"", render_junit(proof))) == set(order)
