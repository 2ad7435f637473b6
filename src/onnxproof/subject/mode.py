"""A module's mode and buffers: set for a forward, and put back after it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy
import torch
from torch import nn

from onnxproof.system import end_twin

# Its functions by name; types are left out, which old code gives other names (`numpy.bool = bool`).
NUMPY = {name: value for name, value in vars(numpy).items() if callable(value) and not isinstance(value, type)}

SETS = re.compile(r'prim::SetAttr\[name="(\w+)"\]')
_SET: WeakKeyDictionary[nn.Module, list[str]] = WeakKeyDictionary()


@contextmanager
def enter_eval(module: nn.Module) -> Iterator[None]:
    """Every submodule in eval mode; each one's own mode restored after.

    The flag is set directly: exported programs refuse `.eval()`, and a user's override of it may do other things.
    """
    modes = [(child, child.training) for child in module.modules()]
    try:
        for child, _ in modes:
            _set_mode(child, False)
        yield
    finally:
        for child, mode in modes:
            _set_mode(child, mode)


@contextmanager
def hold_at_rest(module: nn.Module) -> Iterator[None]:
    """The module in eval mode, without gradients, and its buffers as they were after."""
    with enter_eval(module), preserve_buffers(module), torch.no_grad():
        yield


@contextmanager
def preserve_buffers(module: nn.Module) -> Iterator[None]:
    """The module's buffers, and what a script keeps, as they were, whatever a forward does to them."""
    kept = [(child, name, _own(getattr(child, name))) for child in module.modules() for name in list_set(child)]
    before = [
        (child, name, buffer, buffer.detach().clone())
        for child in module.modules()
        for name, buffer in child.named_buffers(recurse=False)
    ]
    try:
        yield
    finally:
        for child, name, held in kept:
            setattr(child, name, held)
        with torch.no_grad():
            for child, name, buffer, value in before:
                if buffer.shape == value.shape:
                    buffer.data.copy_(value)
                # A forward may have bound another tensor to the name; a script's own tensors are never the same object.
                if not isinstance(child, torch.jit.ScriptModule) and getattr(child, name, None) is not buffer:
                    setattr(child, name, buffer)


class Rest:
    """A module is as it was after every run, or after several through which it remembers."""

    def __init__(self, module: nn.Module, *, needed: bool = True) -> None:
        self._module, self._needed, self._remembers = module, needed, False

    def after_run(self) -> AbstractContextManager[None]:
        """What the module keeps is put back after the block, unless it is to remember."""
        return preserve_buffers(self._module) if self._needed and not self._remembers else nullcontext()

    @contextmanager
    def remember(self) -> Iterator[None]:
        """What the module keeps goes on from run to run inside the block, and is put back after it."""
        with preserve_buffers(self._module):
            self._remembers = True
            try:
                yield
            finally:
                self._remembers = False


def list_set(module: nn.Module) -> list[str]:
    """The attributes that the forward of a script sets: it has no buffers for what it keeps."""
    if not isinstance(module, torch.jit.ScriptModule) or not hasattr(module, "forward"):
        return []
    if module not in _SET:
        _SET[module] = sorted({*SETS.findall(str(module.inlined_graph))})
    return [name for name in _SET[module] if hasattr(module, name)]


def read_kept(module: nn.Module) -> dict[str, torch.Tensor]:
    """What a module keeps from call to call where a forward changes it: buffers, and tensors that a script sets."""
    kept = {name: tensor.detach().clone() for name, tensor in module.named_buffers()}
    for path, child in module.named_modules():
        held = {name: getattr(child, name) for name in list_set(child)}
        kept |= {f"{path}.{n}" if path else n: t.clone() for n, t in held.items() if isinstance(t, torch.Tensor)}
    return kept


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


@contextmanager
def keep_surroundings() -> Iterator[None]:
    """The process, the current folder and numpy's functions as they were: from one paths are read, with the others answers are compared."""
    own, folder, functions = os.getpid(), os.getcwd(), vars(numpy)
    try:
        yield
    finally:
        end_twin(own)
        if os.getcwd() != folder:
            os.chdir(folder)
        functions |= {name: function for name, function in NUMPY.items() if functions[name] is not function}


def _set_mode(module: nn.Module, training: bool) -> None:
    with suppress(AttributeError, RuntimeError):  # a ScriptModule frozen without the flag has only one mode
        if module.training != training:
            module.training = training


def find_trained(module: nn.Module) -> list[str]:
    """Paths of the submodules that are in train mode."""
    return [name or "(the module itself)" for name, child in module.named_modules() if child.training]


def forget_compiled() -> None:
    """torch.cond compiles its branches even in eager mode; what failed under a mode of ours would fail ever after."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()
