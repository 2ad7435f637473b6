"""What an input may hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import onnxproof
import onnxproof.errors
from onnxproof.cases.domain import bind_lengths, infer_domain, observe_range
from onnxproof.cases.roles import Use
from onnxproof.request.specs import Range


def domain(example, declared=None, use=None, name="x", role=None):
    return infer_domain(name, np.asarray(example), {0: "batch"}, declared, use or Use(), role=role)


def test_roles_are_inferred_from_use_name_and_example():
    assert domain(np.zeros((2, 3, 8, 8), np.float32), use=Use(convolved=True)).role == "image"
    assert domain(np.zeros((2, 7, 8, 8), np.float32), use=Use(convolved=True)).role == "float"
    hidden = np.zeros((2, 1, 1, 5), np.float32)
    hidden[0, 0, 0, 3:] = -1e9
    assert domain(hidden, use=Use(added_before_softmax=True)).role == "additive-mask"
    assert domain(np.ones((2, 4), np.int64), use=Use(selects=True)).role == "mask"
    assert domain(np.array([3, 5]), name="lengths").role == "length"
    assert domain(np.array([3, 5]), use=Use(compared=True), name="n").role == "length"
    assert domain(np.array([-3, 5]), use=Use(compared=True), name="n").role == "integer"
    assert domain(np.zeros((2, 3), np.float32), role="mask").role == "mask"


def test_ranges_are_finite_and_whole_for_integers(tmp_path):
    module, inputs = torch.nn.Linear(3, 2).eval(), (torch.randn(2, 3),)
    with pytest.raises(onnxproof.errors.UserError, match="finite"):
        onnxproof.prove(module, inputs, range={"input": (0, float("inf"))}, out=tmp_path)
    ids = infer_domain("ids", np.array([1, 2]), {0: "batch"}, Range(0.5, 3.5), Use())
    assert (ids.valid.low, ids.valid.high) == (1, 3)


def test_a_length_that_counts_nothing_is_an_integer():
    lengths = domain(np.array([9, 5]), name="lengths")
    short = infer_domain("x", np.zeros((2, 6), np.float32), {0: "batch"}, None, Use())
    assert [d.role for d in bind_lengths([short, lengths])] == ["float", "integer"]
    fixed = bind_lengths([short, domain(np.array([4, 5]), name="lengths")])[1]
    assert (fixed.measures, fixed.within({})) == (6, Range(0, 6))


def test_the_range_of_an_example_is_observed():
    assert observe_range(domain(np.array([[3, -2], [7, 0]]))) == Range(-2, 7)
    assert observe_range(domain(np.zeros((0, 2), np.int64))) == Range(0, 1)
