"""Who is to blame: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from onnxproof.findings import Stage
from onnxproof.proof.codec import Number


@dataclass(frozen=True)
class Culprit:
    """A node that introduces an error of its own (not one that it inherits), and where it comes from."""

    ADDED: ClassVar = ("piece",)

    node: str
    op: str
    introduced: Number
    """Error of its output relative to the output's scale when it is fed the true inputs."""
    module: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None
    cls: str | None = None
    """Class of the module."""
    value: str | None = None
    """The value it computes."""
    contributes: float | None = None
    """By how much the error of the graph's outputs falls if this node alone is mended; None where there is no other culprit."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    """What PyTorch says at the worst element, and what the node says there."""
    got: Any = None
    rule: str | None = None
    """The exporter's rewrite rule that made the node, if one did."""
    border: bool = False
    """It holds a subgraph: the error is somewhere inside, and is not followed further."""
    outputs: tuple[str, ...] = ()
    """The module's outputs that depend on it; none where that is not known."""
    reproduction: str | None = None
    """Folder with the node alone, its inputs and a script."""
    piece: tuple[str, ...] = ()
    """Nodes of which it is one: they compute nothing that the module does, up to the value in which they differ."""


@dataclass(frozen=True)
class Step:
    """One node on the error's way through the graph: what it introduces, and the error of its inputs."""

    node: str
    op: str
    introduced: Number
    inherited: Number
    module: str | None = None


@dataclass(frozen=True)
class Birth:
    """Where the first NaN or infinity is born that the inputs do not have."""

    side: str
    node: str
    op: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Blame:
    """The step and the nodes; `rewrite` is the onnxruntime optimisation that has to be switched off to heal it."""

    ADDED: ClassVar = ("unseen",)

    stage: Stage | None
    culprits: tuple[Culprit, ...] = ()
    rewrite: str | None = None
    removed: tuple[str, ...] = ()
    """For `simplify`: nodes that the exporter's optimiser removed on the way to the culprit."""
    path: tuple[Step, ...] = ()
    amplifiers: tuple[Step, ...] = ()
    """Nodes that magnify the error they inherit: `introduced` is the factor."""
    births: tuple[Birth, ...] = ()
    aligned: str | None = None
    """How values were paired: by name, by structure, or not."""
    vanishes: bool = False
    """The fault is gone as soon as inner values are watched: only the whole, fused graph shows it."""
    unseen: bool = False
    """The candidate shows no values inside the graph: no node was looked for in it."""
