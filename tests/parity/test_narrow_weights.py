"""Large weights: what is computed of them in float64 while they stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from onnxproof.parity import narrow_weights
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors import products


class Reading(nn.Module):
    """A table, products in both directions, and a weight that is an output."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(50, 12), nn.Linear(12, 40), nn.Linear(40, 12, bias=False)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.down(torch.tanh(self.up(self.table(ids))))
        return hidden @ self.table.weight.t(), self.up.weight.t()


@pytest.fixture
def wanted():
    torch.manual_seed(0)
    module, ids = Reading().eval(), torch.randint(0, 50, (3, 5))
    exact = Reading().eval().double()
    exact.load_state_dict({name: value.double() for name, value in module.state_dict().items()})
    with torch.no_grad():
        return module, ids, [one.numpy() for one in exact(ids)]


@pytest.mark.parametrize("rows", [96, 4])
def test_large_weights_give_what_their_copies_in_float64_would(wanted, monkeypatch, rows):
    module, ids, expected = wanted
    monkeypatch.setattr(narrow_weights, "LARGE", 100)
    monkeypatch.setattr(products, "BLOCK", 60)
    monkeypatch.setattr(narrow_weights, "ROWS", rows)
    monkeypatch.setattr("onnxproof.parity.float64.COPIED", 0)
    got = DoubleRunner(make_subject(module, (ids,))).run({"ids": ids.numpy()})
    for one, other in zip(got.values(), expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


def test_a_large_weight_is_never_widened_whole(wanted, monkeypatch):
    module, _, _ = wanted
    monkeypatch.setattr(narrow_weights, "LARGE", 100)
    monkeypatch.setattr(products, "BLOCK", 60)
    weight = module.up.weight
    widened, original = [], torch.mm

    def watch(left, right, **out):
        widened.append((right.dtype, right.numel()))
        return original(left, right, **out)

    monkeypatch.setattr(torch, "mm", watch)
    given = torch.ones(2, 12, dtype=torch.float64), weight.detach().t()
    result = narrow_weights.take_narrow(torch.ops.aten.mm.default, given, {})(*given)
    assert result.dtype == torch.float64
    assert len(widened) > 1
    assert all(dtype == torch.float64 and size <= 60 for dtype, size in widened)


def test_threads_are_as_before(wanted, monkeypatch):
    module, _, _ = wanted
    monkeypatch.setattr(narrow_weights, "LARGE", 100)
    before = torch.get_num_threads()
    given = torch.ones(2, 12, dtype=torch.float64), module.up.weight.detach().t()
    narrow_weights.take_narrow(torch.ops.aten.mm.default, given, {})(*given)
    assert torch.get_num_threads() == before


def test_legal_roundings_are_those_of_the_copy(wanted, monkeypatch):
    """The same errors in the same places, up to what float64 itself loses."""
    module, ids, _ = wanted
    inputs = {"ids": ids.numpy()}
    copied = DoubleRunner(make_subject(module, (ids,)))
    copied.run(inputs)
    expected = [copied.sample(inputs, seed) for seed in (1, 6)]
    monkeypatch.setattr(narrow_weights, "LARGE", 100)
    monkeypatch.setattr("onnxproof.parity.float64.COPIED", 0)
    double = DoubleRunner(make_subject(module, (ids,)))
    double.run(inputs)
    for seed, wide in zip((1, 6), expected, strict=True):
        for one, other in zip(double.sample(inputs, seed).values(), wide.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
