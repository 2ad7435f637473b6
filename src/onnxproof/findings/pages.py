"""The reference of findings as a page: `python -m onnxproof.findings.pages > docs/findings.md`."""

from __future__ import annotations

from onnxproof.findings import CATALOGUE, Entry

FAMILIES = {
    "OX0": "The run itself",
    "OX1": "The model and its export",
    "OX2": "Parity",
    "OX3": "Graph, file and session",
    "OX4": "Latency",
    "OX5": "Task quality",
    "OX6": "Data",
}


def page() -> str:
    """Every entry of the catalogue, by family."""
    lines = ["# Findings", "", "Generated from the catalogue; `onnxproof explain CODE` prints the same.", ""]
    for prefix, title in FAMILIES.items():
        entries = [entry for code, entry in sorted(CATALOGUE.items()) if code.startswith(prefix)]
        if entries:
            lines += [f"## {prefix}xx: {title}", "", *(line for entry in entries for line in section(entry))]
    return "\n".join(lines)


def section(entry: Entry) -> list[str]:
    """One entry."""
    return [
        f"### {entry.code}: {entry.title}",
        "",
        f"*{entry.severity}*" + (f", stage *{entry.stage}*" if entry.stage else ""),
        "",
        entry.what,
        "",
        f"**Why it matters.** {entry.why}",
        "",
        f"**What to do.** {entry.fix}",
        "",
        f"**Example.** {entry.example}",
        "",
        f"**Looks alike and is right.** {entry.near_miss}",
        "",
    ]


if __name__ == "__main__":
    print(page(), end="")
