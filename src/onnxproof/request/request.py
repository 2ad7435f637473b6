"""What is to be done, as one value: it travels from the command line to the process that works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.specs import InputSpec, ProviderSpec, Range, Role

CPU = ProviderSpec("CPUExecutionProvider")


Exporter = Literal["auto", "dynamo", "torchscript"]


@dataclass(frozen=True)
class ExportOptions:
    """How to export."""

    opset: int | None = None
    exporter: Exporter = "auto"
    keep_metadata: bool = False
    optimize: bool = True
    strict: bool = False
    """Whether torch.export traces Python strictly, instead of running it."""


@dataclass(frozen=True)
class SessionSettings:
    """The session that ships."""

    providers: tuple[ProviderSpec, ...] = (CPU,)
    optimization: str = "all"
    threads: int | None = None
    disabled_optimizers: tuple[str, ...] = ()
    execution: str = "sequential"


@dataclass(frozen=True)
class Limits:
    """When a difference is suspicious enough to ask what rounding may do (the tightest of the policy's thresholds)."""

    noise: float = 10.0
    atol: float = 1e-4
    rtol: float = 1e-3
    max_abs: float = 1e-3


@dataclass(frozen=True)
class VerifySettings:
    """How to verify."""

    session: SessionSettings = SessionSettings()
    batch_sizes: tuple[int, ...] | None = None
    data: str | None = None
    seed: int = 0
    budget: float = 120.0
    nonfinite: bool = False
    isolated: bool = False
    """Whether a crash costs a child only: then inputs that are known to kill onnxruntime are tried too."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    memory: int | None = None
    """Bytes for inner values while locating; None for the default."""
    search: float = 0.0
    """Seconds to look for an input on which the two sides part."""
    counterexamples: str | None = None
    """The folder of counterexamples: kept ones are tried first, new ones are written there."""
    limits: Limits = Limits()


@dataclass(frozen=True)
class Job:
    """A subject and everything asked about it."""

    target: str | None = None
    """TARGET as the user wrote it; None for a module that is in memory."""
    pickled: str | None = None
    """A file with (module, inputs), for a module in memory that is proved in another process."""
    memory: tuple[Any, Any] | None = field(default=None, compare=False)
    """(module, inputs) in memory; stays in the caller's process."""
    inputs: tuple[InputSpec, ...] = ()
    dynamic: dict[str, dict[int, str]] | None = None
    ranges: dict[str, Range] = field(default_factory=dict)
    onnx: str | None = None
    """A file someone else exported; None to export."""
    out: str = "onnxproof-out"
    export: ExportOptions = ExportOptions()
    verify: VerifySettings = VerifySettings()
    bench: Any = None
    """A `latency.settings.BenchSettings` where times are asked for."""
    evaluate: EvaluateSettings | None = None
    """What is asked about a data set with labels; None for nothing."""
    case_timeout: float = 300.0
    export_timeout: float = 1800.0
