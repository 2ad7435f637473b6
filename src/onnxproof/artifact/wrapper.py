"""The module as exporters like it best: flat tensors in, a flat tuple of tensors out.

Exporters stumble over dicts, dataclasses, keyword inputs, Python values and custom types. With the structure kept
outside the captured program, none of that reaches them, and every name is ours to choose.
"""

from __future__ import annotations

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
        # Not eval(), which would change the user's own module for good.
        self.training = False

    # torch's messages name `leaves`, and are read by it (`diagnosis/chain.py`, `artifact/specialised.py`).
    def forward(self, *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._rebuild(leaves)
        return tuple(flatten(self.model(*args, **kwargs)).tensors.values())
