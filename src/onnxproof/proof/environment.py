"""What the answer depends on besides the model: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class Environment:
    """Versions, machine, and the session that ships."""

    OMITTED: ClassVar = (
        *("onnxproof", "python", "torch", "onnx", "onnxruntime", "numpy"),
        *("platform", "machine", "cpus", "torch_threads", "command"),
    )
    ADDED: ClassVar = ("providers", "optimization", "threads", "runtime", "original")

    onnxproof: str | None = None
    python: str | None = None
    torch: str | None = None
    onnx: str | None = None
    onnxruntime: str | None = None
    numpy: str | None = None
    platform: str | None = None
    machine: str | None = None
    cpus: int | None = None
    torch_threads: int | None = None
    providers: tuple[str, ...] = ()
    optimization: str | None = None
    threads: int | None = None
    runtime: str | None = None
    """Where the candidate runs, if not in this interpreter; of a lint, the release it was asked about."""
    original: str | None = None
    """Where the first of two files runs, as `--runtime` names it, if a runtime was named for it."""
    command: str | None = None
    """What was typed."""


@dataclass(frozen=True)
class Timing:
    """How long the proof itself took."""

    OMITTED: ClassVar = ("seconds",)
    ADDED: ClassVar = ("stages",)

    seconds: float | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    """Where they went, by stage."""
