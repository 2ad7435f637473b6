"""Legal roundings: they surround what float32 really does, and leave alone what is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import models
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.rounding import EXACT, FIRST, OWN, RULES, Injector
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


def arrays(x):
    return {"x": to_numpy(x)}


def spread(module, x, count=8):
    double = DoubleRunner(make_subject(module, (x,)))
    truth = double.run(arrays(x))["output"]
    samples = [double.sample(arrays(x), seed)["output"] for seed in range(count)]
    return truth, np.max([np.abs(s - truth) for s in samples], axis=0)


class Op(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


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


def test_chaos_spreads():
    module, (x,) = models.chaos()
    _, far = spread(module, x)
    assert far.max() > 0.1


def rounded(function, *args, seed=0):
    injector = Injector(2.0**-24, torch.float32, seed)
    return injector.call(function, args, {}), injector.injected


def test_no_operation_is_exact_and_rounded():
    assert not EXACT & set(RULES)


def test_sums_that_float32_holds_stay_as_they_are():
    x = torch.tensor([1.0, 2.0, 0.1], dtype=torch.float64)
    total, count = rounded(torch.ops.aten.add.Tensor, x, x)
    assert count == 1
    assert total[:2].tolist() == [2.0, 4.0]
    assert 0 < abs(float(total[2]) - 0.2) < 1e-7


def test_what_overflows_float32_is_infinite():
    x = torch.tensor([3.0e38, -3.0e38], dtype=torch.float64)
    assert rounded(torch.ops.aten.mul.Tensor, x, torch.tensor(1.7, dtype=torch.float64))[0].tolist() == [
        float("inf"),
        float("-inf"),
    ]


def test_an_operation_in_place_is_rounded_in_place():
    x = torch.full((50,), 0.1, dtype=torch.float64)
    result, count = rounded(torch.ops.aten.sigmoid_.default, x)
    assert result is x
    assert count == 1
    exact = torch.full((50,), 0.1, dtype=torch.float64).sigmoid()
    assert 0 < float((x - exact).abs().max()) < 1e-5


def test_of_several_results_the_first_is_rounded():
    x = torch.rand(4, 6, dtype=torch.float64)
    exact = torch.ops.aten.var_mean.correction(x, [1])
    got, _ = rounded(torch.ops.aten.var_mean.correction, x, [1])
    assert not torch.equal(got[0], exact[0])
    assert torch.equal(got[1], exact[1])


def test_indices_and_what_is_empty_have_no_error():
    assert rounded(torch.ops.aten.argmax.default, torch.rand(3, dtype=torch.float64))[1] == 0
    assert rounded(torch.ops.aten.exp.default, torch.zeros(0, dtype=torch.float64))[1] == 0


@pytest.mark.parametrize(
    ("accurate", "lossy"), [(torch.log1p, lambda x: (1 + x).log()), (torch.expm1, lambda x: x.exp() - 1)]
)
def test_losing_the_digits_of_small_values_is_no_rounding(accurate, lossy):
    x = torch.rand(1, 50) * 1e-7
    truth, far = spread(Op(accurate), x)
    assert np.abs(accurate(x).double().numpy() - truth).max() <= 4 * far.max()
    assert np.abs(lossy(x).double().numpy() - truth).max() > 1e4 * far.max()


def test_a_product_whose_partial_sums_overflow_may_be_no_number():
    """Infinities of both signs may meet in it, whatever the sum itself is; one factor alone only overflows."""
    row, column = torch.full((1, 4), 1e30, dtype=torch.float64), torch.full((4, 1), 1e20, dtype=torch.float64)
    seen = [float(rounded(torch.ops.aten.mm.default, row, column, seed=seed)[0]) for seed in range(16)]
    assert any(np.isnan(seen))
    assert any(np.isinf(seen))
    alone = [rounded(torch.ops.aten.mul.Tensor, row[0, 0], column[0, 0], seed=seed)[0] for seed in range(16)]
    assert not torch.stack(alone).isnan().any()


@pytest.mark.parametrize("function", [nn.functional.elu, nn.functional.selu, lambda x: nn.functional.celu(x, 1.5)])
def test_an_elu_may_lose_what_an_exponential_less_one_loses(function):
    """onnxruntime's kernel has absolute accuracy below zero; above it there is nothing to lose."""
    _, far = spread(Op(function), torch.tensor([[-1e-7, -1e-4, 1e-4]]))
    assert (far[0, :2] > 1e-8).all()
    assert (far[0, :2] < 1e-5).all()
    assert far[0, 2] < 1e-9


@pytest.mark.parametrize(
    "function", [lambda x: x.argsort(0), lambda x: x.sort(0, descending=True)[1], lambda x: x.topk(30, 0).indices]
)
def test_equal_values_come_in_any_order(function):
    """Of a pair of equal ones, either is first in some sample; the order of different ones stays."""
    x = torch.arange(40.0).reshape(-1, 1) // 2
    double = DoubleRunner(make_subject(Op(function), (x,)))
    truth = double.run(arrays(x))["output"]
    samples = [double.sample(arrays(x), seed)["output"] for seed in range(4)]
    assert np.all(np.any([sample != truth for sample in samples], axis=0))
    assert all(np.array_equal(sample // 2, truth // 2) for sample in samples)


def test_what_rounds_to_a_number_may_equal_it():
    """Two values normalised are ±1, up to a rounding; what was not rounded equals what it equals."""
    x = (torch.rand(40, 2) + 1) * torch.tensor([-200.0, 200.0])
    norm = Op(lambda x: torch.nn.functional.layer_norm(x, (2,)) == 1.0)
    double = DoubleRunner(make_subject(norm, (x,)))
    samples = [double.sample(arrays(x), seed)["output"] for seed in range(24)]
    assert np.array_equal(np.any(samples, axis=0), (x > 0).numpy())
    assert not np.all(samples, axis=0).any()
    plain = DoubleRunner(make_subject(Op(lambda x: x == 0.5), (x,)))
    beside = torch.tensor([[0.5, np.nextafter(np.float32(0.5), np.float32(1))]])
    assert all(plain.sample(arrays(beside), seed)["output"].tolist() == [[True, False]] for seed in range(8))


def test_a_stable_sort_keeps_its_order():
    x = torch.arange(40.0).reshape(-1, 1) // 2
    _, far = spread(Op(lambda x: x.sort(dim=0, stable=True)[1]), x)
    assert far.max() == 0


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


def test_what_saturates_is_equal_and_either_of_it_may_come_first():
    """In float64 a sigmoid of 40 is less than one of 41; in float32 both are 1, and kernels take the first or what they like."""
    scores, x = torch.arange(40.0, 72.0), torch.randperm(1000)[:32].double()
    module = Op(lambda x: x[torch.sigmoid(scores).topk(1).indices])
    double = DoubleRunner(make_subject(module, (x.float(),)))
    taken = {int(double.sample(arrays(x.float()), seed)["output"][0]) for seed in (OWN, FIRST)}
    assert taken == {int(x[0]), int(x[torch.ones(32).topk(1).indices])}
