"""A second module like the first: what is done to it leaves the user's alone."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn


def copy_module(module: nn.Module) -> nn.Module:
    """A copy with weights and buffers of its own; what cannot be copied (locks, generators, open files) is shared."""
    try:
        return copy.deepcopy(module)
    except Exception:  # anything may hang on a module, and each thing refuses in its own way
        return _clone_module(module, {})


def _clone_module(module: nn.Module, made: dict[int, Any]) -> nn.Module:
    if id(module) in made:
        known: nn.Module = made[id(module)]
        return known
    other = made[id(module)] = copy.copy(module)
    # copy.copy shares these three tables with the original.
    other._modules = {name: part and _clone_module(part, made) for name, part in module._modules.items()}
    other._parameters = {name: _clone_tensor(tensor, made) for name, tensor in module._parameters.items()}
    other._buffers = {name: _clone_tensor(tensor, made) for name, tensor in module._buffers.items()}
    return other


def _clone_tensor(tensor: Any, made: dict[int, Any]) -> Any:
    """A tensor of its own; tied ones stay tied."""
    if tensor is None or id(tensor) in made:
        return made.get(id(tensor))
    clone = tensor.detach().clone()
    made[id(tensor)] = nn.Parameter(clone, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else clone
    return made[id(tensor)]
