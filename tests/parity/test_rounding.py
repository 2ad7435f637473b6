"""Legal roundings: what is injected, where, and what stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import models
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.rounding import FIRST, OWN, TIED, Injector
from onnxproof.subject.assembly import make_subject
from parity.sampled import Op, arrays, spread


def test_chaos_spreads():
    module, (x,) = models.chaos()
    _, far = spread(module, x)
    assert far.max() > 0.1


def rounded(function, *args, seed=0):
    injector = Injector(2.0**-24, torch.float32, seed)
    return injector.call(function, args, {}), injector.injected


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


def test_of_several_results_each_is_rounded():
    x = torch.rand(4, 6, dtype=torch.float64)
    exact = torch.ops.aten.var_mean.correction(x, [1])
    got, _ = rounded(torch.ops.aten.var_mean.correction, x, [1])
    for one, other in zip(got, exact, strict=True):
        assert 0 < float((one - other).abs().max()) < 1e-5


def test_indices_and_what_is_empty_have_no_error():
    assert rounded(torch.ops.aten.argmax.default, torch.rand(3, dtype=torch.float64))[1] == 0
    assert rounded(torch.ops.aten.exp.default, torch.zeros(0, dtype=torch.float64))[1] == 0


def test_a_product_whose_partial_sums_overflow_may_be_no_number():
    """Infinities of both signs may meet in it, whatever the sum itself is; one factor alone only overflows."""
    row, column = torch.full((1, 4), 1e30, dtype=torch.float64), torch.full((4, 1), 1e20, dtype=torch.float64)
    seen = [float(rounded(torch.ops.aten.mm.default, row, column, seed=seed)[0]) for seed in range(16)]
    assert any(np.isnan(seen))
    assert any(np.isinf(seen))
    alone = [rounded(torch.ops.aten.mul.Tensor, row[0, 0], column[0, 0], seed=seed)[0] for seed in range(16)]
    assert not torch.stack(alone).isnan().any()


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


def test_what_saturates_is_equal_and_either_of_it_may_come_first():
    """In float64 a sigmoid of 40 is less than one of 41; in float32 both are 1, and kernels take the first or what they like."""
    scores, x = torch.arange(40.0, 72.0), torch.randperm(1000)[:32].double()
    module = Op(lambda x: x[torch.sigmoid(scores).topk(1).indices])
    double = DoubleRunner(make_subject(module, (x.float(),)))
    taken = {int(double.sample(arrays(x.float()), seed)["output"][0]) for seed in (OWN, FIRST)}
    assert taken == {int(x[0]), int(x[torch.ones(32).topk(1).indices])}
    tame = double.sample(arrays(x.float()), OWN, unit=2.0**-50)["output"]
    assert int(tame[0]) == int(x[-1])  # with float64's own errors nothing is made equal


def test_a_deviation_of_tiny_numbers_may_vanish_with_their_squares():
    """PyTorch's kernel adds in float64, others square in float32; what float32 squares stays."""
    x = torch.randn(3, 8) * torch.tensor([[1e-40], [1e-10], [1.0]])
    double = DoubleRunner(make_subject(Op(lambda x: x.std(1)), (x,)))
    own, first = (double.sample(arrays(x), seed)["output"] for seed in (OWN, FIRST))
    assert (own > 0).all()
    assert (first > 0).tolist() == [False, True, True]


def test_one_sample_makes_one_of_what_a_kernel_may_make_one():
    """A group of one number is nothing once its mean is gone: kernels give nothing there, or some rounding."""
    x = torch.rand(1, 2, dtype=torch.float64)
    norm = torch.ops.aten.native_group_norm.default
    (tied, *_), _ = rounded(norm, x, None, None, 1, 2, 1, 2, 1e-5, seed=TIED)
    assert not tied.any()
    near = torch.tensor([1.0, 1.0 + 2.0**-26, 1e-40], dtype=torch.float64)
    got, _ = rounded(torch.ops.aten.tanh.default, near, seed=TIED)
    assert got[0] == got[1]
    assert got[2] == 0


@pytest.mark.parametrize("value", [float("nan"), 1e-40])
def test_what_is_no_number_and_what_is_flushed_come_in_any_order(value):
    """NaN are equal to a sort, and numbers that are not normal to kernels that take them for zero."""
    x = torch.tensor([[value], [2 * value], [3 * value], [1.0]])
    double = DoubleRunner(make_subject(Op(lambda x: x.argsort(0)), (x,)))
    samples = [double.sample(arrays(x), seed)["output"][:, 0].tolist() for seed in range(8)]
    small = [[place for place in sample if place != 3] for sample in samples]
    assert len({tuple(one) for one in small}) > 1
