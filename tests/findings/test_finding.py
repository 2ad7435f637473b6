"""A finding asks its code's entry, and findings make the verdict."""

from __future__ import annotations

import pytest

from onnxproof.findings import Finding, Where, decide_verdict, found, look_up
from onnxproof.proof.codec import decode, to_plain


def test_what_is_not_given_comes_from_the_entry():
    finding, entry = found("OX203", "differs"), look_up("OX203")
    assert finding.entry == entry
    assert (finding.severity, finding.stage, finding.help) == (entry.severity, entry.stage, entry.help)
    given = found("OX203", "differs", severity="note", stage="kernel", help="wait")
    assert (given.severity, given.stage, given.help) == ("note", "kernel", "wait")


def test_a_finding_survives_json():
    finding = found("OX201", "wrong", where=Where(output="y", case="c"), evidence={"max_abs": 1.0})
    assert decode(to_plain(finding), Finding) == finding
    assert decode({**to_plain(finding), "from_the_future": 1}, Finding) == finding


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [([], "ship"), (["note"], "ship"), (["review", "note"], "review"), (["review", "block"], "block")],
)
def test_the_worst_finding_decides(severities, verdict):
    assert decide_verdict([found("OX201", "m", severity=s) for s in severities]) == verdict


def test_an_accepted_or_known_finding_does_not_gate():
    finding = found("OX201", "m")
    assert decide_verdict([finding.accept("fine"), finding.know("seen")]) == "ship"
    assert (finding.accept("fine").accepted, finding.know("seen").known) == ("fine", "seen")


def test_nothing_compared_is_neither_accepted_nor_known():
    nothing = found("OX004", "nothing was compared")
    assert decide_verdict([nothing.accept("please")]) == decide_verdict([nothing.know("as before")]) == "block"


@pytest.mark.parametrize(
    ("code", "evidence", "measure", "excess"),
    [
        ("OX201", {"max_abs": 0.5, "unexplained": 3.0}, 0.5, 3.0),
        ("OX202", {"worst_ratio": 40.0, "unexplained": None}, 40.0, None),
        ("OX203", {"exactness": {"ratio": 7.0}}, 7.0, 7.0),
        ("OX203", {"exactness": None}, None, None),
        ("OX207", {"mismatched": 2, "unexplained": 2}, 2, None),
        ("OX215", {"max_abs": 0.5}, None, None),
    ],
)
def test_how_large_it_is_stands_where_the_entry_says(code, evidence, measure, excess):
    finding = found(code, "m", evidence=evidence)
    assert (finding.measure, finding.excess) == (measure, excess)


def test_healing_is_offered_until_it_was_tried():
    wrong, rounding = found("OX201", "m"), found("OX204", "m")
    assert "--heal" in wrong.help
    assert "--heal" not in wrong.without_offer().help
    assert wrong.without_offer().help == wrong.entry.fix
    assert rounding.without_offer() == rounding
