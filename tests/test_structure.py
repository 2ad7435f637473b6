"""Nested values ↔ flat named tensors."""

from __future__ import annotations

import pytest
import torch

import models
from onnxproof.errors import InputError
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import flatten_call


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


def test_inputs_are_named_after_parameters():
    module, inputs = models.structured()
    flat = flatten_call(module, (), inputs)
    assert list(flat.tensors) == ["x", "state.bias", "state.more[0]"]
    args, kwargs = flat.rebuild(list(flat.tensors.values()))
    assert args == ()
    assert kwargs["scale"] == 3.0


def test_the_batch_is_dynamic_where_sizes_agree():
    module, inputs = models.lookup()
    assert make_subject(module, inputs).dynamic == {"ids": {0: "batch"}, "attention_mask": {0: "batch"}}
    assert make_subject(module, inputs, dynamic={}).dynamic == {}


def test_a_module_without_inputs_says_how_to_give_them():
    with pytest.raises(InputError, match="--input name:4x3x224x224:float32"):
        make_subject(torch.nn.Linear(2, 2), None)
