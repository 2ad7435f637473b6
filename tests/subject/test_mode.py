"""A module's mode and buffers, put back after a forward."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import nn

from onnxproof.subject.mode import enter_eval, find_trained, hold_at_rest, preserve_buffers


def mixed() -> nn.Sequential:
    module = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).train()
    module[1].eval()
    return module


def test_each_submodule_gets_its_own_mode_back():
    module = mixed()
    with suppress(KeyError), enter_eval(module):
        assert find_trained(module) == []
        raise KeyError
    assert find_trained(module) == ["(the module itself)", "0"]


def test_an_override_of_eval_is_not_called():
    class Stubborn(nn.Module):
        def eval(self):
            raise NotImplementedError

    with enter_eval(Stubborn()):
        pass


def test_buffers_are_put_back_and_those_of_another_shape_left():
    module = mixed()
    with preserve_buffers(module):
        module(torch.randn(8, 2) + 5)
        assert module[0].running_mean.abs().min() > 0.1
    assert module[0].running_mean.eq(0).all()
    with preserve_buffers(module):
        module[0].running_mean.resize_(3)
    assert module[0].running_mean.shape == (3,)


def test_at_rest_there_are_no_gradients():
    module = nn.Linear(2, 2).train()
    with hold_at_rest(module):
        assert not module(torch.ones(1, 2)).requires_grad
        assert not module.training
    assert module.training
