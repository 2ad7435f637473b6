"""What an entry says of itself."""

from __future__ import annotations

import pytest

from onnxproof.findings.entry import FAMILIES, OFFER, Entry, find_family

ENTRY = Entry("OX201", "title", "block", "what", "why", "fix")


@pytest.mark.parametrize(("code", "name"), [("OX001", "run"), ("OX145", "export"), ("OX615", "data")])
def test_a_code_begins_like_its_family(code, name):
    assert find_family(code).name == name
    assert find_family(code) in FAMILIES


def test_a_family_of_another_release_is_known_by_its_prefix():
    family = find_family("OX901")
    assert (family.name, family.adjustable) == ("OX9", False)
    assert family not in FAMILIES


def test_healing_is_offered_where_it_may_help():
    assert ENTRY.help == "fix"
    healable = Entry("OX201", "title", "block", "what", "why", "fix", healable=True)
    assert healable.help == "fix" + OFFER


def test_an_entry_is_as_it_was_read():
    assert ENTRY.acceptable
    assert ENTRY.family.name == "parity"
    with pytest.raises(AttributeError):
        ENTRY.title = "another"
