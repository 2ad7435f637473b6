"""A module's mode and buffers: set for a forward, and put back after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch
from torch import nn


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
    """The module's buffers as they were, whatever a forward does to them."""
    before = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                if buffer.shape == value.shape:
                    buffer.data.copy_(value)


def _set_mode(module: nn.Module, training: bool) -> None:
    with suppress(AttributeError, RuntimeError):  # a ScriptModule frozen without the flag has only one mode
        if module.training != training:
            module.training = training


def find_trained(module: nn.Module) -> list[str]:
    """Paths of the submodules that are in train mode."""
    return [name or "(the module itself)" for name, child in module.named_modules() if child.training]
