"""Artifact: the ONNX file and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

Size = int | str | None


@dataclass(frozen=True)
class Port:
    """An input or output of the graph: a size is a number, a symbol's name, or None where nothing is said."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None


@dataclass(frozen=True)
class Precision:
    """A lower precision than float32 that a file has chosen."""

    kind: str
    """`int8 static`, `int8 dynamic`, `int4 weights`, `float16` and the like."""
    text: str
    """The same in a line, with counts."""
    operators: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Operator → how many have it, of how many."""
    per_channel: bool = False
    declared: bool = False
    """Whether the file is judged by its own meaning, and by what the precision costs, because the original is more precise."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """The ONNX file and how it was made."""

    ADDED: ClassVar = ("precision",)

    path: str
    exporter: str
    opset: int
    ir_version: int = 0
    producer: str = ""
    sha256: str
    bytes: int = 0
    nodes: int = 0
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    promised_inputs: tuple[str, ...] | None = None
    """Names the file itself says it was exported with (onnxproof writes them into its artifacts)."""
    promised_outputs: tuple[str, ...] | None = None
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    """The sizes that torch.export says a dynamic dimension may have."""
    sourcemap: str | None = None
    optimized: bool | None = None
    strict: bool | None = None
    """Whether torch.export traced Python strictly, asked for or because nothing else worked."""
    log: str = ""
    operators: Mapping[str, int] = field(default_factory=dict)
    """Operator → how many nodes are one, subgraphs included."""
    precision: Precision | None = None
