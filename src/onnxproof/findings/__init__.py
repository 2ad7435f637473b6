"""The catalogue of findings: what each code means, why it matters, how to fix it, and what follows from it."""

from onnxproof.findings.catalogue import CATALOGUE, look_up
from onnxproof.findings.entry import FAMILIES, Entry, Family, Severity, Stage
from onnxproof.findings.finding import Finding, Verdict, Where, decide_verdict, found

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
    "decide_verdict",
    "found",
    "look_up",
]
