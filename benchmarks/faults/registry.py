"""Registry of faults: an architecture, a change that makes its export wrong, and an input that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx

Class = Literal["plain", "noise", "edge", "shape", "contract", "runtime"]
Factory = Callable[[], tuple[Any, Any]]
Inputs = Mapping[str, np.ndarray]

ARCHITECTURES: dict[str, Factory] = {}
DYNAMIC: dict[str, dict[str, dict[int, str]]] = {}


def architecture(**dynamic: dict[int, str]) -> Callable[[Factory], Factory]:
    """Register an architecture under the factory's name; `dynamic` names more dims than the batch: x={0: "batch", 1: "seq"}."""

    def register(make: Factory) -> Factory:
        ARCHITECTURES[make.__name__] = make
        if dynamic:
            DYNAMIC[make.__name__] = dynamic
        return make

    return register


@dataclass(frozen=True)
class Fault:
    """One realistic fault."""

    name: str
    cls: Class
    architecture: str
    mutate: Callable[[onnx.ModelProto], str | None] | None
    """Changes the correct graph in place and returns the culprit's node name; None where the exporter or runtime itself errs."""
    witness: Callable[[], Inputs]
    """A recorded input (by the module's input names) on which the two sides differ."""
    why: str
    source: str = "mutation"
    """mutation, tracker (a real bug that still reproduces) or user (a user's mistake)."""
    stage: str | None = None
    """Who is to blame, where it is known: capture, translate, simplify, kernel, optimize, model."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword options of `onnxproof.prove` (dynamic, range, optimization)."""
    export: dict[str, Any] = field(default_factory=dict)
    """Keyword options of `onnxproof.export` for the artifact (exporter, opset)."""


FAULTS: dict[str, Fault] = {}


def add(fault: Fault) -> None:
    """Register a fault."""
    if fault.name in FAULTS:
        raise ValueError(f"two faults are called {fault.name}")
    FAULTS[fault.name] = fault
