"""What `quantize` made and tried, and which file won: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxproof.findings import Verdict
from onnxproof.proof.codec import Sparse
from onnxproof.request.lowering import Lowering


@dataclass(frozen=True)
class NodeCost(Sparse):
    """What a lower precision costs at one node, in decibels of signal to noise: the lower, the worse."""

    node: str
    op: str
    value: str
    """The value that it makes."""
    introduced: float
    """Made of right inputs."""
    inherited: float
    """Brought along by its inputs."""
    clipped: float = 0.0
    """Share of its inputs that a range cuts off."""
    outlier: float = 0.0
    """How many times the typical channel's range its weight's largest has, where one scale serves all; 0 where none stands out."""
    effect: float | None = None
    """On the outputs, if this node alone has the lower precision."""
    module: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Bounded:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Quantized(Sparse):
    """One file in a lower precision: how it was made, and what came of it."""

    name: str
    settings: Lowering
    path: str | None = None
    """None where there is none: `reason` says why."""
    bytes: int | None = None
    p50_ms: float | None = None
    time: Bounded | None = None
    """How many times the float file's time it takes."""
    drops: Mapping[str, Bounded] = field(default_factory=dict)
    """Metric → by how much it is worse than the original's."""
    changed: Bounded | None = None
    """Share of decisions that are not the original's."""
    verdict: Verdict | None = None
    reason: str | None = None
    """The gravest finding."""


@dataclass(frozen=True)
class KeptInFloat:
    """The search for the smallest set of nodes that must stay in float."""

    goal: Mapping[str, float]
    nodes: tuple[str, ...]
    evaluations: int
    """Times that all of the data were run through a file."""
    minimal: bool
    """Whether it was tried that the goal is missed with any one of the nodes in the lower precision."""
    of: int
    """Nodes that could have it."""


@dataclass(frozen=True)
class Quantization(Sparse):
    """Every file that was tried; the proof itself is about the one that won."""

    candidates: tuple[Quantized, ...]
    original: str
    """The float file that they were made of."""
    original_bytes: int
    original_p50_ms: float | None = None
    winner: str | None = None
    calibration_rows: int = 0
    judging_rows: int = 0
    """No row is among both."""
    seed: int = 0
    """Of the split."""
    search: KeptInFloat | None = None
    ranking: tuple[NodeCost, ...] = ()
    """Of the winner, the worst nodes first."""
