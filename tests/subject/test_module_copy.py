"""A second module like the first."""

from __future__ import annotations

import threading

import torch
from torch import nn

from onnxproof.subject.module_copy import copy_module


class Locked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()  # nothing copies it
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.again = self.first
        self.register_buffer("seen", torch.zeros(1))


def test_what_cannot_be_copied_is_shared_and_tensors_are_not():
    module = Locked()
    other = copy_module(module)
    with torch.no_grad():
        other.first.weight.zero_()
        other.seen += 1
    assert module.first.weight.abs().sum() > 0
    assert module.seen.item() == 0
    assert other.lock is module.lock
    assert other.second.weight is other.first.weight
    assert other.again is other.first
