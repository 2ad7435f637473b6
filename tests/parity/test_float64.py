"""The module in float64, and the graph in float64 beside it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import models
from onnxproof.graph.evaluator import ReferenceRunner
from onnxproof.graph.widening import digest_weights, nudge_constants, widen
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy, to_torch
from parity.sampled import Op


def runner(module, *inputs):
    return DoubleRunner(make_subject(module, inputs))


def arrays(*inputs, names=("x",)):
    return {name: to_numpy(value) for name, value in zip(names, inputs, strict=True)}


def test_hard_coded_dtypes_are_widened():
    module, (x,) = models.hard_coded()
    double = runner(module, x)
    got = double.run(arrays(x))["output"]
    wide = x.double()
    expected = module.weight.double() * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6))
    assert got.dtype == np.float64
    assert np.abs(got - expected.detach().numpy()).max() < 1e-15


class AsksDtype(nn.Module):
    def forward(self, x):
        return x * torch.finfo(x.dtype).eps + torch.zeros(1, dtype=torch.float32)


def test_code_that_asks_for_the_dtype_gets_the_modules_own():
    x = torch.ones(2, 2)
    assert runner(AsksDtype(), x).run(arrays(x))["output"][0, 0] == torch.finfo(torch.float32).eps


class Limited(nn.Module):
    def forward(self, x):
        return torch.atanh(x.clamp(-0.999999, 0.999999)), x > 0.1


def test_limits_are_what_the_modules_dtype_makes_of_them():
    """Between 0.999999 and its nearest float32 lies 7e-3 of an arctangent, which no side computes."""
    double, limit = runner(Limited(), torch.zeros(1, 2)), np.float64(np.float32(0.999999))
    double.run(arrays(torch.zeros(1, 2)))  # nothing is limited: what is learnt of the first input holds for the next
    got, above = double.run(arrays(torch.tensor([[2.0, 0.1]]))).values()
    assert got[0, 0] == pytest.approx(np.arctanh(limit), abs=1e-12)
    assert not above[0, 1]


def test_the_users_module_is_not_touched():
    module, inputs = models.tutorial()
    double = DoubleRunner(make_subject(module, inputs))
    double.run(arrays(*inputs, names=("input",)))
    assert module[0].weight.dtype == torch.float32
    assert torch.get_default_dtype() == torch.float32


class FoldsConstants(nn.Module):
    def forward(self, x):
        angles = torch.arange(x.shape[-1], dtype=torch.float32) * 0.1
        return x * torch.cos(angles)


def test_constants_only_touches_what_does_not_depend_on_the_input():
    x = torch.randn(2, 50)
    double = runner(FoldsConstants(), x)
    truth = double.run(arrays(x))["output"]
    moved = double.sample(arrays(x), 1, constants_only=True)["output"]
    assert 0 < np.abs(moved - truth).max() < 1e-5
    assert runner(Op(lambda x: x * 2), x).sample(arrays(x), 1, constants_only=True) is None


@pytest.mark.parametrize("name", models.CORRECT)
def test_the_graph_in_float64_is_the_module_in_float64(name, exported):
    module, inputs = getattr(models, name)()
    subject = make_subject(module, inputs)
    feed = {n: to_numpy(t) for n, t in subject.inputs.tensors.items()}
    exact = ReferenceRunner(widen(onnx.load(exported(name)), keep_lossy_casts=True)).run(feed)["output"]
    truth = DoubleRunner(subject).run(feed)["output"]
    assert exact.dtype == np.float64
    assert np.abs(exact - truth).max() / np.abs(truth).max() < 1e-7


def test_a_lossy_cast_stays_lossy_when_asked():
    graph = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) '
        "{ h = Cast<to = 10>(x) y = Cast<to = 1>(h) }"
    )
    x = {"x": np.array([1.0001, 2.0], np.float32)}
    assert ReferenceRunner(widen(graph, keep_lossy_casts=False)).run(x)["y"][0] == np.float32(1.0001)
    assert ReferenceRunner(widen(graph, keep_lossy_casts=True)).run(x)["y"][0] == 1.0


def test_only_derived_constants_are_nudged(exported):
    module, _ = models.mlp()
    wide = widen(onnx.load(exported("mlp")), keep_lossy_casts=True)
    known = digest_weights([to_numpy(p) for p in module.parameters()])
    moved = nudge_constants(wide, known, 1)
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in wide.graph.initializer}
    for tensor in (moved or wide).graph.initializer:
        if tensor.name.endswith("weight"):
            assert np.array_equal(onnx.numpy_helper.to_array(tensor), weights[tensor.name])
    blind = nudge_constants(wide, set(), 1)
    assert blind is not None


def test_tensors_cross_bit_for_bit():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        tensor = torch.tensor([[0, 1], [2, 3]]).to(dtype)
        back = to_torch(to_numpy(tensor))
        assert back.dtype == dtype
        assert torch.equal(back, tensor)


def test_an_epsilon_that_is_left_out_is_that_of_the_modules_dtype():
    """torch takes it from the tensor without asking: float64's would mean something else for small numbers."""
    x = torch.tensor([[1e-4, -2e-4, 3e-4, 0.0]])
    truth = DoubleRunner(make_subject(nn.RMSNorm(4).eval(), (x,))).run({"x": to_numpy(x)})["output"]
    own = nn.RMSNorm(4)(x).detach().numpy()
    assert np.allclose(truth, own, rtol=1e-5)
    given = DoubleRunner(make_subject(nn.RMSNorm(4, eps=1e-12).eval(), (x,))).run({"x": to_numpy(x)})["output"]
    assert not np.allclose(truth, given, rtol=0.1)
