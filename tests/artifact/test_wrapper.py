"""Flat tensors in, flat tensors out."""

from __future__ import annotations

import torch
from torch import nn

from onnxproof.artifact.wrapper import FlatModule
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.dynamic import resize_examples
from onnxproof.subject.subject import Subject


class Nested(nn.Module):
    def forward(self, pair, scale=1.0):
        return {"sum": (pair["a"] + pair["b"]) * scale, "parts": [pair["a"], None, 3]}


def test_the_structure_stays_outside():
    subject = make_subject(Nested(), ({"a": torch.ones(2), "b": torch.ones(2)}, 3.0))
    flat = FlatModule(subject)
    answer = flat(torch.full((2,), 1.0), torch.full((2,), 2.0))
    assert [tensor.tolist() for tensor in answer] == [[9.0, 9.0], [1.0, 1.0]]
    assert not flat.training


def test_dimensions_grow_and_shrink_by_what_is_there():
    rows = torch.tensor([[1, 2, 3], [4, 5, 6]])
    dynamic = {"a": {0: "more"}, "b": {1: "fewer"}, "c": {0: "as-many"}, "d": {0: "none"}, "e": {1: "unnamed"}}
    subject = Subject(
        nn.Identity(), (), dict(zip("abcde", [rows, rows, rows, rows[:0], rows], strict=True)), dynamic=dynamic
    )
    grown, shrunk, same, empty, other = resize_examples(subject, {"more": 3, "fewer": 2, "as-many": 2, "none": 4})
    assert grown.tolist() == [[1, 2, 3], [4, 5, 6], [1, 2, 3]]
    assert shrunk.tolist() == [[1, 2], [4, 5]]
    assert same is rows
    assert other is rows
    assert empty.shape == (0, 3)
