"""The reference of findings as a page: `python -m onnxproof.findings.pages > docs/findings.md`."""

from __future__ import annotations

from onnxproof.findings import CATALOGUE, FAMILIES, Entry


def render_page() -> str:
    """Every entry of the catalogue, by family."""
    paragraphs = ["# Findings", "Generated from the catalogue; `onnxproof explain CODE` prints the same."]
    for family in FAMILIES:
        entries = [entry for _, entry in sorted(CATALOGUE.items()) if entry.family == family]
        paragraphs += [
            f"## {family.prefix}xx: {family.title}",
            *(part for entry in entries for part in render_section(entry)),
        ]
    return "\n\n".join(paragraphs) + "\n"


def render_section(entry: Entry) -> list[str]:
    """One entry, paragraph by paragraph."""
    stage = f", stage *{entry.stage}*" if entry.stage else ""
    said = [f"**{label}.** {text}" if label else text for label, text in list_facts(entry).items()]
    return [f"### {entry.code}: {entry.title}", f"*{entry.severity}*{stage}", *said]


def list_facts(entry: Entry) -> dict[str, str]:
    """What there is to say about a code, in order: label → text; the first needs no label."""
    parts = {
        "": entry.what,
        "Why it matters": entry.why,
        "What to do": entry.help,
        "Where it hits every case": entry.never,
        "Never accepted": entry.unacceptable,
        "Example": entry.example,
        "Looks alike and is right": entry.near_miss,
    }
    return {label: text for label, text in parts.items() if text}


if __name__ == "__main__":
    print(render_page(), end="")
