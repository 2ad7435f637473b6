"""What was proved: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class TensorFacts:
    """The form of one tensor."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class SubjectFacts:
    """The module with its example inputs, or the ONNX file that stands in its place."""

    OMITTED: ClassVar = ("class_", "parameters", "weights")
    ADDED: ClassVar = ("inputs", "constants", "dynamic", "ranges", "limits")

    name: str = ""
    target: str | None = None
    class_: str | None = None
    parameters: int | None = None
    inputs: Mapping[str, TensorFacts] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    """Inputs that are no tensors, as Python writes them."""
    dynamic: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Input → dimension → its name."""
    weights: str | None = None
    """A hash of all weights."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Dynamic dimension → the sizes that are served."""

    @property
    def is_file(self) -> bool:
        """Whether two files are compared, and this is the first of them."""
        return str(self.target).endswith(".onnx")

    @property
    def baseline(self) -> str:
        """What the candidate is held against, by the name that findings and reports use."""
        return Path(str(self.target)).name if self.is_file else "PyTorch"
