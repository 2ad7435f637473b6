"""The record: inputs by name, calls, sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import models
from onnxproof.errors import InputError
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.subject import Subject, flatten_call, read_script_names


def test_inputs_are_named_after_parameters():
    module, inputs = models.structured()
    flat = flatten_call(module, (), inputs)
    assert list(flat.tensors) == ["x", "state.bias", "state.more[0]"]
    args, kwargs = flat.rebuild(list(flat.tensors.values()))
    assert args == ()
    assert kwargs["scale"] == 3.0


class Many(nn.Module):
    def forward(self, first, *rest, scale=1.0):
        return (first + sum(rest)) * scale


def test_positional_inputs_and_keywords_come_back_as_they_were_given():
    given = (torch.ones(1), [torch.ones(2), torch.ones(3)])
    flat = flatten_call(Many(), given, {"scale": torch.tensor(2.0), "flag": "no"})
    assert list(flat.tensors) == ["first", "rest_0[0]", "rest_0[1]", "scale"]
    assert flat.constants == {"flag": "no"}
    args, kwargs = flat.rebuild([tensor + 1 for tensor in flat.tensors.values()])
    assert (args[0].item(), args[1][1].tolist()) == (2.0, [2.0, 2.0, 2.0])
    assert (kwargs["scale"].item(), kwargs["flag"]) == (3.0, "no")


def test_one_name_for_two_inputs_is_refused():
    with pytest.raises(InputError, match="two inputs have the same name 'first'"):
        flatten_call(Many(), (torch.ones(1),), {"first": torch.ones(1)})


def test_the_names_of_a_scripted_module_are_in_its_schema():
    module, inputs = models.tutorial()
    traced = torch.jit.trace(module.eval(), inputs)
    (name,) = read_script_names(traced)
    assert list(flatten_call(traced, inputs, {}).tensors) == [name]
    assert read_script_names(module) == []


class Picky(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        assert x.shape[1] == 3
        return x.mul_(2)


def test_what_a_module_accepts_leaves_it_and_its_inputs_as_they_are():
    subject = make_subject(Picky().train(), (torch.ones(2, 3),))
    example = torch.ones(4, 3)
    assert subject.accepts([example])
    assert not subject.accepts([torch.ones(2, 5)])
    assert (subject.module.calls.item(), subject.module.training) == (0.0, True)
    assert example.eq(1).all()


def test_sizes_shapes_and_the_batch():
    subject = Subject(nn.Bilinear(3, 3, 2), (torch.ones(4, 3), torch.ones(4, 3)), {}, dynamic={"input2": {0: "rows"}})
    assert subject.sizes() == {"rows": 4}
    assert subject.shapes() == {"input1": (4, 3), "input2": (None, 3)}
    assert subject.batch == "rows"
