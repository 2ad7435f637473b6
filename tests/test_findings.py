"""The catalogue, and how findings become a verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onnxproof.findings import CATALOGUE, FAMILIES, JUDGED, Finding, Where, found
from onnxproof.policy.policy import verdict_of

SOURCES = Path(__file__).parents[1] / "src" / "onnxproof"


def test_every_entry_is_complete():
    for code, entry in CATALOGUE.items():
        assert re.fullmatch(r"OX\d{3}", code)
        assert all((entry.title, entry.what, entry.why, entry.fix)), code
        assert entry.severity in ("block", "review", "note")


def test_no_code_has_two_meanings():
    codes = [entry.code for family in FAMILIES for entry in family.ENTRIES]
    assert len(codes) == len(set(codes))


def test_every_code_in_the_catalogue_is_used_and_every_used_code_is_in_it():
    used = set()
    for path in SOURCES.rglob("*.py"):
        if path.parent.name != "findings":
            used |= set(re.findall(r'"(OX\d{3})"', path.read_text()))
    assert used == set(CATALOGUE)
    assert set(CATALOGUE) >= JUDGED


def test_a_finding_survives_json():
    finding = found("OX201", "wrong", where=Where(output="y", case="c"), evidence={"max_abs": 1.0})
    assert Finding.from_json(finding.to_json()) == finding
    assert Finding.from_json({**finding.to_json(), "from_the_future": 1}) == finding


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [([], "ship"), (["note"], "ship"), (["review", "note"], "review"), (["review", "block"], "block")],
)
def test_the_worst_finding_decides(severities, verdict):
    assert verdict_of([found("OX201", "m", severity=s) for s in severities]) == verdict


def test_an_accepted_finding_does_not_gate():
    finding = found("OX201", "m").accept("known")
    assert verdict_of([finding]) == "ship"
    assert finding.accepted == "known"


def test_every_entry_has_an_example_and_a_near_miss():
    assert [code for code, entry in CATALOGUE.items() if not (entry.example and entry.near_miss)] == []


def test_every_code_is_triggered_by_a_test():
    texts = "".join(
        path.read_text() for path in Path(__file__).parent.rglob("test_*.py") if path.name != "test_findings.py"
    )
    assert [code for code in CATALOGUE if code not in texts] == []
