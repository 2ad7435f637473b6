"""What came of trying the pieces of a graph on values of their own: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from onnxproof.findings import Where


@dataclass(frozen=True)
class Latent:
    """A piece that differs from what it stands for on values that no case has brought there."""

    ADDED: ClassVar = ("kernel", "swallowed", "sizes")
    first: str
    """Its first node."""
    last: str
    op: str
    """Of its last node."""
    value: str
    profile: str
    """The kind of values on which it differs."""
    near: bool
    """Whether they are not far from what the cases bring there."""
    expected: float
    got: float
    given: Mapping[str, float] = field(default_factory=dict)
    """What goes in at that place, where it is one number."""
    where: Where = Where()
    reached: str | None = None
    """The case that brought such values there."""
    kernel: bool = False
    """Whether it is the runtime that computes it otherwise, and not the graph that says so."""
    swallowed: bool = False
    """Whether the outputs were the same with either result, though they answer to it."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of the model, where it differs at others than the example's."""


@dataclass(frozen=True)
class ModuleTrials:
    """The pieces of one module."""

    module: str
    pieces: int = 0
    tried: int = 0
    values: int = 0
    uncut: int = 0
    """Those that nothing in common cuts out."""


@dataclass(frozen=True)
class Trials:
    """How many pieces there are, how many were tried, on how many values, and those that differ."""

    ADDED: ClassVar = ("modules", "sizes")
    pieces: int = 0
    tried: int = 0
    values: int = 0
    reason: str | None = None
    """Why some were not tried."""
    latent: tuple[Latent, ...] = ()
    modules: tuple[ModuleTrials, ...] = ()
    sizes: tuple[Mapping[str, int], ...] = ()
    """Other sizes of the model at which the pieces were tried too, on fewer values."""
