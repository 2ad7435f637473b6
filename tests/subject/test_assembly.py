"""A subject put together: what does not fit the module is told."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import models
from onnxproof.errors import InputError, TargetError
from onnxproof.request.specs import InputSpec, Range
from onnxproof.subject.assembly import make_subject

LINEAR = nn.Linear(3, 2)
EXAMPLE = (torch.ones(4, 3),)


def test_the_batch_is_dynamic_where_sizes_agree():
    module, inputs = models.lookup()
    assert make_subject(module, inputs).dynamic == {"ids": {0: "batch"}, "attention_mask": {0: "batch"}}
    assert make_subject(module, inputs, dynamic={}).dynamic == {}


def test_a_module_without_inputs_says_how_to_give_them():
    with pytest.raises(InputError, match="--input name:4x3x224x224:float32"):
        make_subject(torch.nn.Linear(2, 2), None)


def test_inputs_are_made_from_specs_within_their_ranges():
    spec = InputSpec("input", (5, 3), "float32")
    subject = make_subject(LINEAR, None, specs=[spec], ranges={"input": Range(2.0, 3.0)})
    made = subject.inputs.tensors["input"]
    assert (made.shape, made.dtype) == ((5, 3), torch.float32)
    assert ((made >= 2) & (made <= 3)).all()
    assert list(subject.ranges) == ["input"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"specs": [InputSpec("other", (1, 3), "float32")]}, "no input 'other'; its inputs are 'input'"),
        ({"specs": [InputSpec("input", (1, 3), "float33")]}, "'float33' is not a dtype"),
        ({"dynamic": {"other": {0: "n"}}}, "--dynamic: the model has no input 'other'"),
        ({"dynamic": {"input": {2: "n"}}}, "a dimension below 2"),
        ({"ranges": {"other": Range(0, 1)}}, "--range: the model has no input 'other'"),
        ({"ranges": {"batch": Range(5, 9)}}, "whose batch is 4"),
    ],
)
def test_what_the_module_does_not_have_is_told(given, message):
    with pytest.raises(InputError, match=message):
        make_subject(LINEAR, EXAMPLE, **given)


def test_a_range_of_sizes_and_dimensions_from_the_end():
    subject = make_subject(LINEAR, EXAMPLE, dynamic={"input": {-2: "rows"}}, ranges={"rows": Range(1, 9)})
    assert subject.dynamic == {"input": {0: "rows"}}
    assert subject.limits == {"rows": (1, 9)}


def test_floats_are_cast_where_only_the_dtype_of_the_weights_is_taken():
    subject = make_subject(nn.Linear(3, 2).double(), EXAMPLE)
    assert (subject.cast, subject.inputs.tensors["input"].dtype) == ("float64", torch.float64)
    assert make_subject(LINEAR, EXAMPLE).cast is None


def test_what_has_no_shape_of_its_own_is_refused():
    with pytest.raises(TargetError, match="a lazy module"):
        make_subject(nn.LazyLinear(2), EXAMPLE)
    quantised = torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.quint8)
    with pytest.raises(InputError, match=r"quantised tensor.*dequantize"):
        make_subject(LINEAR, (quantised,))
    with pytest.raises(InputError, match="nothing to feed"):
        make_subject(LINEAR, (3.0,))


def test_a_range_of_sizes_beyond_all_integers_is_cut():
    """Greater ones cannot be written into a journal."""
    subject = make_subject(LINEAR, EXAMPLE, dynamic={"input": {0: "rows"}}, ranges={"rows": Range(1, 1e30)})
    assert subject.limits["rows"] == (1, 1 << 62)
    with pytest.raises(InputError, match="expected sizes around"):
        make_subject(LINEAR, EXAMPLE, dynamic={"input": {0: "rows"}}, ranges={"rows": Range(-5, 9)})


def test_a_tensor_that_no_memory_holds_is_told():
    spec = InputSpec("input", (2**31 - 1, 2**31 - 1), "float32")
    with pytest.raises(InputError, match="--input input:2147483647x2147483647:float32 cannot be made: "):
        make_subject(LINEAR, None, specs=[spec])


def test_a_range_may_name_a_size_as_only_the_given_file_does():
    asked = {"input": {0: "rows", 1: "seq", 2: "width"}}
    given = {"seq": Range(1, 9), "rows": Range(2, 7)}
    subject = make_subject(LINEAR, (torch.ones(4, 5, 3),), asked=asked, ranges=given)
    assert subject.dynamic == {"input": {0: "batch", 1: "seq"}}, "what nobody speaks of stays as it is"
    assert subject.limits == {"seq": (1, 9), "batch": (2, 7)}, "the batch keeps its name"
    with pytest.raises(InputError, match="no input 'seq'"):
        make_subject(LINEAR, (torch.ones(4, 5, 3),), ranges={"seq": Range(1, 9)})
