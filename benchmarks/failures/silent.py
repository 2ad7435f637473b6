"""Exports that answer wrongly without a word, each with a fair input that shows it: what `--heal` is measured on."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name


class Forward(nn.Module):
    """A module that is its function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def _of(function, *inputs):
    torch.manual_seed(0)
    return Forward(function).eval(), inputs


def epsilon_of_a_norm():
    return _of(lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-8), torch.randn(4, 8))


def epsilon_of_a_logarithm():
    return _of(lambda x: torch.log(torch.relu(x) + 1e-8), torch.randn(4, 8))


def padding_before_max_pool():
    return _of(lambda x: F.max_pool2d(F.pad(x - 3, (1, 1, 1, 1)), 3, 2), torch.randn(2, 3, 9, 9))


def branch_on_the_batch():
    return _of(lambda x: x * 2 if x.shape[0] > 2 else x - 1, torch.randn(4, 8))


def half_of_a_length():
    return _of(lambda x: x[:, : int(x.shape[1] * 0.5)].sum(1), torch.randn(4, 8))


def adaptive_pool_of_any_size():
    return _of(lambda x: F.adaptive_avg_pool2d(x, (2, 2)), torch.randn(2, 3, 8, 8))


class Divides(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 3, 2, 1, divisor_override=2)


def divisor_override():
    return Divides().eval(), (torch.randn(2, 3, 9, 9),)


def attention_of_a_masked_row():
    def attend(q, mask):
        bias = torch.zeros(mask.shape).masked_fill(mask == 0, float("-inf"))
        bias = bias.unsqueeze(1).unsqueeze(1).expand(-1, 1, q.shape[2], -1)
        return F.scaled_dot_product_attention(q, q, q, attn_mask=bias)

    mask = torch.ones(3, 5, dtype=torch.int64)
    mask[2] = 0
    return _of(attend, torch.randn(3, 2, 5, 4), mask)


class Floors(nn.Module):
    def forward(self, x):
        return torch.floor_divide(x, 0.1)


def floor_divide():
    return Floors().eval(), (torch.tensor([[5.0, 1.0, 0.3, 2.7]]).repeat(4, 1),)


def half_precision_sum():
    return _of(lambda x: x.sum(-1), torch.randn(4, 8).half())


def bernoulli():
    return _of(lambda x: torch.bernoulli(torch.sigmoid(x)), torch.randn(4, 8))


def train_mode():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)).train(), (torch.randn(4, 8),)


OPTIONS: dict[str, list[str]] = {
    "half_of_a_length": ["--dynamic", "inputs_0:0=batch,1=length"],
    "adaptive_pool_of_any_size": ["--dynamic", "inputs_0:0=batch,2=height,3=width"],
}
