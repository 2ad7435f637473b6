"""The catalogue of findings: what each code means, why it matters, how to fix it, and what follows from it."""

from onnxproof.findings.catalogue import CATALOGUE, entry_of
from onnxproof.findings.entry import FAMILIES, Entry, Family, Severity, Stage
from onnxproof.findings.finding import Finding, Verdict, Where, found, verdict_of

__all__ = [
    "CATALOGUE",
    "FAMILIES",
    "Entry",
    "Family",
    "Finding",
    "Severity",
    "Stage",
    "Verdict",
    "Where",
    "entry_of",
    "found",
    "verdict_of",
]
