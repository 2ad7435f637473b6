"""The module as calls: what was recorded gives the same again, and something else on other values."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.trials.calls import Doubt, record, repeat


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.relu_()
        return y + 1


class Through(nn.Module):
    """A view is changed: what was read of the whole before is not what it is after."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 0] = 0.0
        return y + 1


def recorded(module: nn.Module, x: torch.Tensor):
    subject = make_subject(module.eval(), (x,))
    name = next(iter(subject.inputs.tensors))
    return record(DoubleRunner(subject), {name: x.numpy()}), name


def test_a_recorded_module_gives_what_it_gave_and_what_it_would_give():
    x = torch.tensor([[1.0, -2.0, 3.0]])
    program, name = recorded(InPlace(), x)
    every = range(len(program.calls))
    last = program.calls[-1].gives[-1]
    for value in (x.double(), -x.double()):
        got = program.replay(every, {program.inputs[name]: value}, 3.4e38)[last]
        np.testing.assert_array_equal(got, torch.relu(value * 2) + 1)
    assert not program.shared


def test_what_float32_cannot_hold_is_infinite():
    program, name = recorded(InPlace(), torch.ones(1, 2))
    last = program.calls[-1].gives[-1]
    got = program.replay(range(len(program.calls)), {program.inputs[name]: torch.full((1, 2), 3e38).double()}, 3.4e38)[
        last
    ]
    assert torch.isinf(got).all()


def test_values_that_were_changed_through_another_are_known():
    program, _ = recorded(Through(), torch.ones(2, 3))
    assert program.shared


class Saturated(nn.Module):
    """Whether a limit was met: asked of a number that is computed, and of one that is given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x / 3 * 3 != x, x.clamp(max=1) == x])


def test_what_only_the_last_bits_of_float64_decide_is_in_doubt_and_what_is_exact_is_not():
    x = torch.tensor([[0.7, 0.8, 1.0]])
    program, name = recorded(Saturated(), x)
    every, last = range(len(program.calls)), program.calls[-1].gives[-1]
    given = {program.inputs[name]: x.double()}
    again = [program.replay(every, given, 3.4e38, rounding=Doubt(seed))[last] for seed in range(1, 5)]
    assert {bool(one[0].any()) for one in again} == {True, False}
    assert all(one[1].all() for one in again)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2 + x.sin() * 3


def test_a_call_that_is_made_again_is_one():
    program, name = recorded(Twice(), torch.ones(1, 2))
    assert sum("sin" in str(call.func) for call in program.calls) == 1
    assert len(program.repeated) == 1
    given = {program.inputs[name]: torch.full((1, 2), 0.5).double()}
    got = program.replay(range(len(program.calls)), given, 3.4e38)[program.calls[-1].gives[-1]]
    np.testing.assert_allclose(got, 5 * np.sin(np.full((1, 2), 0.5)))


class Told(nn.Module):
    """A number that Python is told, and a size that it is."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * float(x.sum())).reshape(len(x), -1)


def test_the_same_calls_on_other_inputs_give_what_the_module_would():
    x, other = torch.tensor([[1.0, -2.0, 3.0]]), torch.tensor([[-1.0, 5.0, 0.5]])
    program, name = recorded(InPlace(), x)
    double = DoubleRunner(make_subject(InPlace().eval(), (x,)))
    again, anew = repeat(program, double, {name: other.numpy()}), record(double, {name: other.numpy()})
    assert again is not None
    for number in (number for call in program.calls for number in call.gives):
        np.testing.assert_array_equal(again[number], anew.values[number])


def test_the_same_calls_keep_what_python_was_told():
    x, other = torch.ones(2, 3), torch.full((2, 3), 2.0)
    program, name = recorded(Told(), x)
    double = DoubleRunner(make_subject(Told().eval(), (x,)))
    again = repeat(program, double, {name: other.numpy()})
    assert again is not None
    assert float(again[program.calls[-1].gives[-1]][0, 0]) == 2.0 * 6  # the module says 2 · 12
    assert repeat(program, double, {name: np.ones((3, 3), np.float32)}) is None
