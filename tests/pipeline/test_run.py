"""Whether a search is worth its time, and what is looked at closer."""

from __future__ import annotations

import pytest

from onnxproof.findings import found
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.stages import Run
from onnxproof.request.build import build_request
from onnxproof.request.thresholds import Policy
from proofs import make_case

GOOD, BAD = make_case("batch=1/normal/seed=0", 3e-8, 0), make_case("batch=2/normal/seed=0", 3e-2, 1)


def run_of(*cases, search=1.0, observed=(), policy=None) -> Run:
    collected = Collected(cases={case.name: case for case in cases}, outputs={"y": "out"}, files={"a": "a.npz"})
    for finding in observed:
        collected.observe(finding)
    return Run(build_request("prove", {"search": search}), policy or Policy(), collected)


@pytest.mark.parametrize(
    ("run", "worth"),
    [
        (run_of(GOOD), True),
        (run_of(), False),
        (run_of(GOOD, BAD), False),
        (run_of(GOOD, BAD, policy=Policy(accept={"OX201": "known"})), True),
        (run_of(GOOD, observed=[found("OX102", "in train mode", severity="review")]), True),
    ],
    ids=["all well", "nothing was compared", "found already", "accepted", "only to be reviewed"],
)
def test_a_search_follows_cases_that_found_nothing_grave(run, worth):
    assert run.worth_searching() is worth


def test_a_closer_look_is_for_parity_only_and_all_that_weighs_is_known():
    trained = found("OX102", "in train mode", severity="review")
    run = run_of(GOOD, BAD, observed=[trained])
    closer, known = run.look(), run.all_known()
    assert [(f.code, f.where.case) for f in closer.findings] == [("OX201", BAD.name)]
    assert [f.code for f in known.findings] == ["OX201", "OX102"]
    assert closer.outputs == known.outputs == {"y": "out"}
    assert (closer.files, closer.policy) == ({"a": "a.npz"}, run.policy)
