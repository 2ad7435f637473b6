"""Nested values ↔ flat named tensors."""

from __future__ import annotations

import pytest
import torch

import models
from onnxproof.errors import InputError
from onnxproof.subject.structure import flatten


def test_paths_and_the_way_back():
    value = {"logits": torch.ones(1), "past": [models.Pair(torch.ones(2), torch.ones(3))], "flag": True, "none": None}
    flat = flatten(value)
    assert list(flat.tensors) == ["logits", "past[0].key", "past[0].value"]
    assert flat.constants == {"flag": True}
    again = flat.rebuild([t + 1 for t in flat.tensors.values()])
    assert isinstance(again["past"][0], models.Pair)
    assert again["past"][0].value.tolist() == [2, 2, 2]
    assert again["flag"] is True
    assert again["none"] is None


def test_unnamed_outputs():
    assert list(flatten(torch.ones(1)).tensors) == ["output"]
    assert list(flatten((torch.ones(1), [torch.ones(1)])).tensors) == ["output_0", "output_1[0]"]


def test_dataclasses():
    flat = flatten(models.Result(torch.ones(1), [torch.ones(2)]))
    assert list(flat.tensors) == ["logits", "hidden[0]"]
    assert isinstance(flat.rebuild(list(flat.tensors.values())), models.Result)


def test_something_else_is_refused_with_its_path():
    with pytest.raises(InputError, match=r"a\[0\] is a builtins.object"):
        flatten({"a": [object()]})
