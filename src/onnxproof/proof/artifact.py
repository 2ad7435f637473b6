"""Artifact: the ONNX file and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Size = int | str | None


@dataclass(frozen=True)
class Port:
    """An input or output of the graph: a size is a number, a symbol's name, or None where nothing is said."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Port:
        """Read a port back."""
        shape = data["shape"]
        return Port(data["name"], data["dtype"], None if shape is None else tuple(shape))


@dataclass(frozen=True)
class Artifact:
    """The ONNX file and how it was made."""

    path: str
    exporter: str
    opset: int
    ir_version: int
    producer: str
    sha256: str
    bytes: int
    nodes: int
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

    def to_json(self) -> dict[str, Any]:
        """The artifact as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Artifact:
        """Read an artifact back; fields of a later version are ignored."""
        values = {name: data[name] for name in Artifact.__dataclass_fields__ if name in data}
        for side in ("inputs", "outputs"):
            values[side] = tuple(Port.from_json(port) for port in values[side])
        for side in ("promised_inputs", "promised_outputs"):
            values[side] = tuple(values[side]) if values.get(side) is not None else None
        values["bounds"] = {name: (low, high) for name, (low, high) in (values.get("bounds") or {}).items()}
        return Artifact(**values)
