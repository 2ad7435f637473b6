"""The exporter's tables. torch makes them anew for every export, which is most of the time that a small one takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any
from unittest.mock import patch

# torch's own, where none is asked for.
DEFAULT_OPSET = 20


@contextmanager
def share_tables() -> Iterator[None]:
    """Exports inside take the table that an earlier one has made, and list torch's composite operators once instead of once for every namespace."""
    with ExitStack() as stack:
        with suppress(ImportError, AttributeError):  # torch calls it otherwise: exports are slower, not wrong
            stack.enter_context(patch.object(_find_original()[0], "from_torchlib", staticmethod(make_registry)))
        with suppress(ImportError, AttributeError):
            from torch._export import utils

            once = cache(utils._materialize_cpp_cia_ops)
            stack.enter_context(patch.object(utils, "_materialize_cpp_cia_ops", once))
        yield


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
