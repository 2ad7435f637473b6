"""A verb's options as keyword-only parameters of a Python function, for `help()`, notebooks and the reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from onnxproof.request.option import options_of
from onnxproof.request.request import Delivery
from onnxproof.request.verbs import VERBS

F = TypeVar("F", bound=Callable[..., Any])
ONLY_WRITTEN = frozenset(["in_process", "fix", "all", "jobs", *options_of(Delivery)])
"""What only the command line does: it prints, writes and exits."""


def taking(verb: str) -> Callable[[F], F]:
    """Show the options of a verb in the signature of a function that takes them as `**options`."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        known = {parameter.name for parameter in own} | ONLY_WRITTEN
        shown = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
            for name, option in VERBS[verb].options().items()
            if name not in known or (name == "baseline" and verb == "bench")
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]  # how functions say what they take
        return function

    return decorate
