"""The reference of findings is what the catalogue says."""

from __future__ import annotations

from onnxproof.findings import CATALOGUE, FAMILIES, Entry
from onnxproof.findings.pages import list_facts, render_page, render_section


def test_every_code_has_its_section_under_its_family():
    lines = render_page().splitlines()
    heads = [line.split(":")[0].lstrip("# ") for line in lines if line.startswith(("## ", "### "))]
    expected = []
    for family in FAMILIES:
        expected += [f"{family.prefix}xx", *(code for code in sorted(CATALOGUE) if code.startswith(family.prefix))]
    assert heads == expected


def test_a_section_says_what_there_is_to_say():
    entry = Entry("OX299", "a title", "review", "What.", "Why.", "Fix.", "kernel", example="this", never="Never.")
    assert list(list_facts(entry)) == ["", "Why it matters", "What to do", "Where it hits every case", "Example"]
    assert render_section(entry)[:3] == ["### OX299: a title", "*review*, stage *kernel*", "What."]
    assert render_section(entry)[-1] == "**Example.** this"
