"""The module as exporters like it best: flat tensors in, a flat tuple of tensors out.

Exporters stumble over dicts, dataclasses, keyword inputs, Python values and custom types. With the structure kept
outside the captured program, none of that reaches them, and every name is ours to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from onnxproof.structure import flatten
from onnxproof.subject import Subject


class FlatModule(nn.Module):
    """A subject's module with flat inputs and outputs."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.model = subject.module
        self._rebuild = subject.inputs.rebuild
        self.training = False

    def forward(self, *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._rebuild(leaves)
        return tuple(flatten(self.model(*args, **kwargs)).tensors.values())


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
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
def preserved(module: nn.Module) -> Iterator[None]:
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
    if module.training != training:
        try:
            module.training = training
        except (AttributeError, RuntimeError):  # a ScriptModule frozen without the flag has only one mode
            return


def trained_submodules(module: nn.Module) -> list[str]:
    """Paths of the submodules that are in train mode."""
    return [name or "(the module itself)" for name, child in module.named_modules() if child.training]


def resized(leaves: Sequence[torch.Tensor], dims: Sequence[dict[int, int]]) -> list[torch.Tensor]:
    """Tensors with some dimensions grown or shrunk by repeating what is there."""
    result = []
    for tensor, sizes in zip(leaves, dims, strict=True):
        for dim, size in sizes.items():
            have = tensor.shape[dim]
            if have and have != size:
                tensor = tensor.index_select(dim, torch.arange(size) % have)
        result.append(tensor)
    return result
