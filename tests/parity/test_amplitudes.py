"""What operations may lose: samples surround what float32 really does, and leave alone what is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from onnxproof.parity.amplitudes import EXACT, RULES
from parity.sampled import Op, spread


def test_moving_data_costs_nothing():
    x = torch.randn(4, 6)
    _, far = spread(Op(lambda x: torch.relu(x).transpose(0, 1).flip(0)[1:].clamp(max=1)), x)
    assert far.max() == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 3.1 + 1,
        lambda x: x @ x.transpose(-1, -2),
        lambda x: x.softmax(-1),
        lambda x: nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: x.sum(-1),
        lambda x: x.cumsum(-1),
        lambda x: nn.functional.gelu(x),
        lambda x: x.var(-1),
        lambda x: x.norm(dim=-1),
        lambda x: x.mean(dim=(0, 1)),
        lambda x: torch.sigmoid(x).exp().log1p(),
        lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    ],
)
def test_samples_surround_what_float32_really_does(function):
    torch.manual_seed(0)
    x = torch.randn(64, 64)
    truth, far = spread(Op(function), x)
    really = np.abs(function(x).double().numpy() - truth)
    assert really.max() <= 4 * far.max() + 1e-12
    assert far.max() < 1e-3 * (1 + np.abs(truth).max())


@pytest.mark.parametrize("dim", [0, 1])
def test_a_gate_is_as_accurate_as_its_sigmoid(dim):
    """Runtimes compute it with absolute accuracy: a closed gate times a large value is off by as much."""
    value, gate = torch.full((4, 6), 100.0), torch.full((4, 6), -14.0)
    truth, far = spread(Op(lambda x: nn.functional.glu(x, dim)), torch.cat([value, gate], dim), 32)
    assert (far > 2 * 2**-24 * 100).all()
    assert (far < 1e-4).all()
    assert truth.max() < 1e-4


def test_the_determinant_of_a_singular_matrix_is_nothing_up_to_rounding():
    """Which order rows are taken in decides whether exactly nothing comes out."""
    x = torch.tensor([[-4.5, -4.0, -3.5], [-3.0, -2.5, -2.0], [-1.5, -1.0, -0.5]])
    truth, far = spread(Op(torch.linalg.det), x, 32)
    assert abs(truth) < 1e-12
    assert 1e-7 < far < 1e-4
    _, far = spread(Op(torch.linalg.det), torch.eye(3), 32)
    assert far < 1e-6


def test_adding_in_order_is_legal_for_long_sums():
    x = torch.rand(1, 100_000)
    truth, far = spread(Op(lambda x: x.sum(-1)), x)
    in_order = np.add.accumulate(x.numpy(), axis=-1, dtype=np.float32)[..., -1]
    assert np.abs(in_order - truth).max() <= 4 * far.max()


def test_no_operation_is_exact_and_rounded():
    assert not EXACT & set(RULES)


@pytest.mark.parametrize(
    ("accurate", "lossy"),
    [
        (torch.log1p, lambda x: (1 + x).log()),
        (torch.expm1, lambda x: x.exp() - 1),
        (torch.sinh, lambda x: (x.exp() - (-x).exp()) / 2),
        (torch.atanh, lambda x: ((1 + x) / (1 - x)).log() / 2),
        (lambda x: torch.erfc(5 + 1e6 * x), lambda x: 1 - torch.erf(5 + 1e6 * x)),
        (lambda x: nn.functional.logsigmoid(20 + 1e6 * x), lambda x: (20 + 1e6 * x).sigmoid().log()),
    ],
)
def test_losing_the_digits_of_small_values_is_no_rounding(accurate, lossy):
    x = torch.rand(1, 50) * 1e-7
    truth, far = spread(Op(accurate), x)
    assert np.abs(accurate(x).double().numpy() - truth).max() <= 4 * far.max()
    assert np.abs(lossy(x).double().numpy() - truth).max() > 1e4 * far.max()


@pytest.mark.parametrize("function", [nn.functional.elu, nn.functional.selu, lambda x: nn.functional.celu(x, 1.5)])
def test_an_elu_may_lose_what_an_exponential_less_one_loses(function):
    """onnxruntime's kernel has absolute accuracy below zero; above it there is nothing to lose."""
    _, far = spread(Op(function), torch.tensor([[-1e-7, -1e-4, 1e-4]]))
    assert (far[0, :2] > 1e-8).all()
    assert (far[0, :2] < 1e-5).all()
    assert far[0, 2] < 1e-9


def test_an_instance_norm_of_equal_values_is_nothing_but_rounding():
    """Its exact answer is zero: what is left of the mean is what rounding leaves."""
    _, far = spread(Op(nn.InstanceNorm1d(4)).eval(), torch.full((2, 4, 6), 0.3))
    assert (far > 0).all()
    assert far.max() < 1e-3


@pytest.mark.parametrize("dim", [0, -1])
def test_a_gate_that_is_all_but_closed_may_lose_what_a_sigmoid_loses(dim):
    x = torch.cat([torch.full((2, 2), 1.5), torch.full((2, 2), -20.0)], dim)
    _, far = spread(Op(lambda x: nn.functional.glu(x, dim)), x)
    assert (far > 1e-8).all()
    assert (far < 1e-5).all()


def test_a_mean_of_values_that_cancel_has_an_error_of_their_size():
    """A zero beside ±1000 is normalised to what rounding left of the mean."""
    _, far = spread(Op(lambda x: nn.functional.layer_norm(x, (4,))), torch.tensor([[1000.0, -1000.0, 0.0, 1e-6]]))
    assert far[0, 2] > 1e-9


def test_the_variance_of_equal_values_is_what_their_mean_loses():
    """A kernel that adds 145 equal numbers in order is off by a mean that no random walk explains."""
    x = torch.full((145, 3), 0.4797456)
    _, far = spread(Op(lambda x: x.var(0)), x)
    ordered = np.add.accumulate(x.numpy(), 0, dtype=np.float32)[-1] / np.float32(145)
    really = (x.numpy() - ordered).astype(np.float64) ** 2
    assert really.max() > 1e-13
    assert (really.max(0) <= 4 * far).all()
    assert far.max() < 1e-10


def test_nothing_that_is_spread_is_not_excused_everything():
    _, far = spread(Op(lambda x: x.std(-1)), torch.full((2, 8), 0.3))
    assert 0 < far.max() < 1e-5


def test_every_result_of_an_operation_is_rounded():
    """The mean beside a variance, as kernels that add in order have it."""
    torch.manual_seed(0)
    x = torch.randn(1024, 1) + 0.4
    truth, far = spread(Op(lambda x: torch.var_mean(x, 0)[1]), x)
    ordered = np.add.accumulate(x.numpy(), 0, dtype=np.float32)[-1] / np.float32(1024)
    assert (np.abs(ordered - truth) <= 4 * far).all()
    assert far.max() < 1e-4


def test_what_is_chosen_among_scattered_values_is_exact_whatever_stands_beside_it():
    """The usual lowest number of a maximum by groups is no value that anything was rounded at."""

    def largest(x: torch.Tensor) -> torch.Tensor:
        lowest = torch.full((3,), -1e9, dtype=x.dtype)
        return lowest.scatter_reduce(0, torch.tensor([0, 0, 1, 1]), x, "amax")[:2]

    _, far = spread(Op(largest), torch.randn(4))
    assert far.max() == 0


def test_what_is_added_at_a_place_loses_by_what_is_added_there():
    def add(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(2, dtype=x.dtype).scatter_add(0, torch.tensor([0, 0, 1, 1]), x)

    _, far = spread(Op(add), torch.tensor([1e9, 3e8, 1.1, 0.7]))
    assert 0 < far[1] < 1e-5
    assert far[0] > 1
