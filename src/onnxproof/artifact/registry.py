"""The exporter's table of translations. torch makes it anew for every export, which is most of the time that a small one takes."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any
from unittest.mock import patch

# torch's own, where none is asked for.
DEFAULT_OPSET = 20


def share_registry() -> AbstractContextManager[Any]:
    """Exports inside take the table that an earlier one has made."""
    try:
        registry, _ = _find_original()
    except (ImportError, AttributeError):
        return nullcontext()  # torch calls it otherwise: exports are slower, not wrong
    return patch.object(registry, "from_torchlib", staticmethod(make_registry))


def make_registry(opset_version: int = DEFAULT_OPSET) -> Any:
    """The table for an opset, to be changed as one likes."""
    # It has translations for the operators of torchvision where these are known.
    known, copied = _make(opset_version, "torchvision" in sys.modules), _find_original()[0]()
    vars(copied).update(vars(known))
    copied.functions = {target: list(ways) for target, ways in known.functions.items()}
    return copied


@cache
def _make(opset: int, _: bool) -> Any:
    return _find_original()[1](opset_version=opset)


@cache
def _find_original() -> tuple[Any, Any]:
    """The class and its method, before anything takes its place. Asked for late: the exporter's modules take a second to import."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    return ONNXRegistry, ONNXRegistry.from_torchlib
