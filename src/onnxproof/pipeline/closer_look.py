"""What a worker is told that looks closer at a file whose cases were run."""

from __future__ import annotations

from dataclasses import dataclass

from onnxproof.parity.ledger import Ledger
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request
from onnxproof.search.look import Look


@dataclass(frozen=True)
class CloserLook:
    """The file, what is known of it, and what to look at."""

    request: Request
    artifact: Artifact
    look: Look
    stateful: bool = False
    ledger: Ledger | None = None
    """What the cases showed of the graph."""
    spent: float = 0.0
    """Seconds of work of the cases."""
