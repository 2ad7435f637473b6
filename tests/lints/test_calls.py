"""From a call to the user's function."""

from __future__ import annotations

import ast
import math
import textwrap

import torch
from torch import nn

from onnxproof.lints.calls import find_called, is_own, read


def free(x):
    return x


def outer():
    def inside(x):
        return free(x) + 1

    def calls(x):
        return inside(x)

    return calls


class Base(nn.Module):
    def step(self, x):
        return x

    @staticmethod
    def fixed(x):
        return x


class Net(Base):
    def step(self, x):
        return super().step(x)

    def forward(self, x):
        self.step(x)
        self.fixed(x)
        free(x)
        math.floor(1.5)
        x.view(2)
        return torch.relu(x)


def targets(function, owner=None) -> dict[str, object]:
    source = read(function)
    assert source is not None
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    return {ast.unparse(call.func): find_called(call, source, owner) for call in calls}


def test_each_kind_of_call_finds_its_function():
    found = targets(Net.forward, Net())
    assert found["self.step"] is Net.step
    assert found["self.fixed"] is Base.fixed
    assert found["free"] is free
    assert found["math.floor"] is math.floor
    assert found["x.view"] is None
    assert targets(Net.step, Net())["super().step"] is Base.step


def test_a_closure_is_looked_into():
    found = targets(outer())["inside"]
    assert read(found).function.__name__ == "inside"


def test_what_has_no_source_of_its_own():
    assert read(math.floor) is None
    assert read(None) is None
    both = (lambda x: x, lambda x: -x)
    assert read(both[0]) is None
    only = lambda x: x + 1  # noqa: E731  # a lambda that can be told
    assert isinstance(read(only).tree, ast.Lambda)


def test_the_users_functions_are_those_that_nobody_installed():
    assert is_own(read(free))
    assert not is_own(read(nn.Linear.forward))
    assert not is_own(read(textwrap.dedent))
    assert not is_own(read(read))
