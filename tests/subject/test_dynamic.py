"""Which dimensions are dynamic."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.errors import InputError
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.dynamic import read_asked


class Cached(nn.Module):
    """Attends to what is past and to itself."""

    def forward(self, x, mask, past_key):
        key = torch.cat([past_key, x], dim=1)
        return {"y": (x @ key.transpose(1, 2)) * mask[:, None], "key": key}


def make(past: int = 5, new: int = 3) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return Cached(), {"x": torch.ones(2, new, 7), "mask": torch.ones(2, past + new), "past_key": torch.ones(2, past, 7)}


def test_the_lengths_of_a_growing_cache_are_dynamic_by_default():
    subject = make_subject(*make())
    assert subject.dynamic["x"] == {0: "batch", 1: "seq"}
    assert subject.dynamic["mask"] == {0: "batch", 1: "past+seq"}
    assert subject.dynamic["past_key"] == {0: "batch", 1: "past"}
    assert subject.sizes() == {"batch": 2, "seq": 3, "past": 5}


def test_a_module_that_takes_one_new_token_has_no_length_of_it():
    class Single(Cached):
        def forward(self, x, mask, past_key):
            assert x.shape[1] == 1
            return super().forward(x, mask, past_key)

    subject = make_subject(Single(), make(new=1)[1])
    assert subject.dynamic["x"] == {0: "batch"}
    assert subject.dynamic["mask"] == {0: "batch", 1: "past+1"}


def test_a_state_of_fixed_size_leaves_the_batch_alone():
    class Plain(nn.Module):
        def forward(self, x, state):
            return {"y": x + state, "state": state * 2}

    assert make_subject(Plain(), (torch.ones(2, 4), torch.ones(2, 4))).dynamic == {
        "x": {0: "batch"},
        "state": {0: "batch"},
    }


class Recurrent(nn.Module):
    """Layers of a recurrent network, whose state has the batch behind the layers, and a table without rows."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 8, num_layers=2, batch_first=True)

    def forward(self, x, h, table):
        y, hn = self.gru(x @ table, h)
        return {"y": y, "hn": hn}


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_batch_that_is_not_first_everywhere_is_found_by_trying(rows):
    subject = make_subject(Recurrent(), (torch.ones(rows, 4, 6), torch.ones(2, rows, 8), torch.ones(6, 6)))
    assert subject.dynamic == {"x": {0: "batch"}, "h": {1: "batch"}}


def test_the_batch_may_be_that_of_another_input_than_the_first():
    class Scaled(nn.Module):
        def forward(self, scale, x):
            return (x * scale) @ torch.ones(3, 4)

    assert make_subject(Scaled(), (torch.ones(3), torch.ones(2, 5, 3))).dynamic == {"x": {0: "batch"}}


def test_where_nothing_is_taken_but_the_example_the_first_dimensions_are_told():
    class Fixed(nn.Module):
        def forward(self, x, y):
            return x.view(4, 3) + y.view(4, 3)

    plain = {"x": {0: "batch"}, "y": {0: "batch"}}
    assert make_subject(Fixed(), (torch.ones(4, 3), torch.ones(4, 3))).dynamic == plain


def test_a_prefix_stands_for_every_input_under_it():
    tensors = {"past.0.key": torch.ones(1, 2), "past.0.value": torch.ones(1, 2), "pastime": torch.ones(1)}
    assert read_asked({"past": {1: "n"}, "past.0.key": {0: "b"}}, tensors) == {
        "past.0.key": {0: "b", 1: "n"},
        "past.0.value": {1: "n"},
    }
    with pytest.raises(InputError, match="no input 'pas'"):
        read_asked({"pas": {0: "b"}}, tensors)
    with pytest.raises(InputError, match=r"below 2, the rank of past\.0\.key"):
        read_asked({"past": {2: "b"}}, tensors)


class Masked(nn.Module):
    def forward(self, x, mask):
        return x * mask


def test_ox150_what_must_follow_is_taken_along():
    inputs = torch.ones(2, 5), torch.ones(2, 5)
    subject = make_subject(Masked(), inputs, dynamic={"x": {1: "seq"}})
    assert subject.dynamic == {"x": {1: "seq"}, "mask": {1: "seq"}}
    assert subject.tied == ("mask:1=seq",)
    both = make_subject(Masked(), inputs, dynamic={"x": {1: "seq"}, "mask": {1: "seq"}})
    assert both.tied == (), "all of it was asked for"


def test_ox150_is_told(tmp_path):
    def codes(**dynamic):
        proof = onnxproof.export(Masked().eval(), (torch.ones(2, 5), torch.ones(2, 5)), dynamic=dynamic, out=tmp_path)
        return {finding.code for finding in proof.findings}

    assert "OX150" in codes(x={1: "seq"})
    assert "OX150" not in codes(x={1: "seq"}, mask={1: "seq"})


def test_a_sum_is_taken_along_too():
    subject = make_subject(*make(), dynamic={"past_key": {1: "past"}})
    assert subject.tied == ("mask:1=past+3",)
    two = make_subject(*make(), dynamic={"past_key": {1: "past"}, "x": {1: "seq"}})
    assert two.dynamic["mask"] == {1: "past+seq"}
    assert two.tied == ("mask:1=past+seq",)
