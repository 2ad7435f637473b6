"""The module as exporters like it best: flat tensors in, a flat tuple of tensors out.

Exporters stumble over dicts, dataclasses, keyword inputs, Python values and custom types. With the structure kept
outside the captured program, none of that reaches them, and every name is ours to choose.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Subject


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
