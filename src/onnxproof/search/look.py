"""What parent and child say to each other about a closer look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxproof.files import PARTIAL
from onnxproof.findings import Finding
from onnxproof.request.thresholds import Policy

# The input a search is at, which goes with the run, and the one it found, until that one is shrunk. Hidden: they are not replayed.
TRYING, FOUND = f".trying{PARTIAL}", ".found.npz"


@dataclass(frozen=True)
class Look:
    """What to look at more closely: findings with their cases, how outputs pair up, and inputs that a search found."""

    findings: tuple[Finding, ...]
    outputs: Mapping[str, str]
    files: Mapping[str, str]
    policy: Policy
