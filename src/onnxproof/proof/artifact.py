"""Artifact: the ONNX file and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Size = int | str | None


@dataclass(frozen=True)
class Port:
    """An input or output of the graph: a size is a number, a symbol's name, or None where nothing is said."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """The ONNX file and how it was made."""

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
