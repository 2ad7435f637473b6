"""Registry of correct models: each is a TARGET (a function without arguments that returns module and inputs)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Factory = Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Model:
    """A model whose export is correct; every alarm on it is a false one."""

    name: str
    family: str
    make: Factory
    why: str
    """What makes it worth having: what people export, or what naive tolerances flag."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword options of `onnxproof.prove` (dynamic, range, batch_sizes)."""


ZOO: dict[str, Model] = {}


def model(family: str, why: str, **options: Any) -> Callable[[Factory], Factory]:
    """Register a factory; the function itself stays usable as a TARGET."""

    def register(make: Factory) -> Factory:
        name = make.__name__
        if name in ZOO:
            raise ValueError(f"two zoo models are called {name}")
        ZOO[name] = Model(name, family, make, why, options)
        return make

    return register
