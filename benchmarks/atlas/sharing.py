"""What the exports of a process have in common, made once: torch's tables, and what one module's exports do before the opset counts."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch._export import utils as export_utils
from torch._ops import DispatchKey, OperatorBase
from torch.export import exported_program
from torch.onnx._internal.exporter import _capture_strategies, _core, _decomp, _registration


@functools.cache
def remember_tables() -> None:
    """Tables of operations that are the same for every export, and take longer to make than an operation takes to export."""
    registry = _registration.ONNXRegistry
    registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))  # type: ignore[method-assign,assignment]
    export_utils._materialize_cpp_cia_ops = functools.cache(export_utils._materialize_cpp_cia_ops)
    exported_program._collect_all_valid_cia_ops = functools.cache(exported_program._collect_all_valid_cia_ops)
    _decomp.create_onnx_friendly_decomposition_table = _copy_known(_decomp.create_onnx_friendly_decomposition_table)
    OperatorBase.py_impl = _hasten(OperatorBase.py_impl)  # type: ignore[method-assign]


def _copy_known(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same table for the same operations, each time as a dictionary of its own: whoever takes it changes it."""
    known = functools.cache(lambda operations: make(set(operations)))
    return lambda operations: dict(known(frozenset(operations)))


def _hasten(slow: Callable[..., Any]) -> Callable[..., Any]:
    """The same registration of a kernel: each export makes thousands, and most of their time goes into their annotations."""

    def py_impl(self: OperatorBase, key: Any) -> Any:
        def register(kernel: Any) -> Any:
            if not isinstance(key, DispatchKey) or key == DispatchKey.Python or key in self.py_kernels:
                return slow(self, key)(kernel)
            self.py_kernels[key] = kernel
            self._dispatch_cache.clear()
            return kernel

        return register

    return py_impl


def settle_down() -> None:
    """What is loaded by now stays: looking for garbage in it took a third of the time."""
    gc.collect()
    gc.freeze()
    gc.disable()


@contextmanager
def share_capture(known: dict[Any, Any]) -> Iterator[None]:
    """An export of a module that has its capture, and its decomposition for the same set of translations, from an earlier one of that module.

    What the newer exporter does from there on is done each time: translation, conversion to the opset, optimisation. A failure is
    an answer too.
    """
    capture, prepare = _capture_strategies.CaptureStrategy.__call__, _core._prepare_exported_program_for_export

    def capture_once(strategy: Any, *args: Any, **kwargs: Any) -> Any:
        return _once(known, type(strategy), lambda: capture(strategy, *args, **kwargs))

    def prepare_once(program: Any, *, registry: Any) -> Any:
        translated = frozenset(map(str, _decomp.get_onnx_implemented_overloads(registry)))
        return _once(known, translated, lambda: prepare(program, registry=registry))

    with (
        patch.object(_capture_strategies.CaptureStrategy, "__call__", capture_once),
        patch.object(_core, "_prepare_exported_program_for_export", prepare_once),
    ):
        yield


def _once(known: dict[Any, Any], question: Any, answer: Callable[[], Any]) -> Any:
    if question not in known:
        try:
            known[question] = answer(), None
        except Exception as error:
            known[question] = None, error
    value, error = known[question]
    if error is not None:
        raise error
    return value
