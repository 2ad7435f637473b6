"""All codes."""

from __future__ import annotations

from onnxproof.findings import data, export, graph, latency, parity, quality, run
from onnxproof.findings.entry import Entry

ENTRIES = tuple(entry for module in (run, export, parity, graph, latency, quality, data) for entry in module.ENTRIES)
CATALOGUE: dict[str, Entry] = {entry.code: entry for entry in ENTRIES}
assert len(CATALOGUE) == len(ENTRIES), "a code has two entries"


def entry_of(code: str) -> Entry:
    """The page about a code; that of a release which has others is empty."""
    return CATALOGUE.get(code) or Entry(code, "a finding of another release", "note", "", "", "")
