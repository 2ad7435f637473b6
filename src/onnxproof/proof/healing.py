"""What `--heal` tried, and what passed: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxproof.findings import Finding
from onnxproof.proof.codec import Sparse


@dataclass(frozen=True)
class Tried:
    """What became of one remedy."""

    what: str
    passed: bool
    reason: str


@dataclass(frozen=True)
class Cost:
    """The healed artifact and session against those before; None where there is nothing to compare with."""

    size_ratio: float | None = None
    latency_ratio: float | None = None


@dataclass(frozen=True)
class Healing(Sparse):
    """The remedies in the order they were tried; the rest is known where one healed."""

    healed: bool
    tried: tuple[Tried, ...] = ()
    change: str | None = None
    export: Mapping[str, Any] | None = None
    """Options of the export that differ."""
    session: Mapping[str, Any] | None = None
    """Options of the session that differ."""
    static: bool | None = None
    limits: Mapping[str, tuple[int, int]] | None = None
    """Dynamic dimension → the sizes that are served."""
    before: Finding | None = None
    """What was wrong."""
    cost: Cost | None = None
