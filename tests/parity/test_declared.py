"""A chosen precision: when a file is held against its own meaning, what that meaning is, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lowered import KINDS, lower, net
from onnxproof.artifact.file import read_artifact
from onnxproof.parity.declared import SPOTLESS, declare_precision, declare_subject, list_originals, measure_cost
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.onnx_module import GraphModule, make_examples


def declared(path, subject, asked="declared") -> bool:
    precision = declare_precision(read_artifact(path), subject, asked).precision
    return precision is not None and precision.declared


def test_a_lower_precision_is_declared_unless_sameness_is_asked_for():
    subject = make_subject(*net())
    assert declared(lower("int8 static"), subject)
    assert not declared(lower("int8 static"), subject, "exact")
    assert not declared(lower("float32"), subject)


def test_a_module_in_half_precision_gives_up_nothing():
    module, (x,) = net()
    assert not declared(lower("float16"), make_subject(module.half(), (x.half(),)))
    assert declared(lower("int8 static"), make_subject(module, (x.half(),)))


def test_a_file_that_has_it_already_gives_up_nothing():
    path = str(lower("int8 static"))
    assert not declared(lower("int8 static"), make_subject(GraphModule(path), make_examples(path)))
    plain = str(lower("float32"))
    assert declared(lower("int8 static"), make_subject(GraphModule(plain), make_examples(plain)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_meaning_is_near_the_original_and_its_roundings_are_near_it(kind):
    subject = make_subject(*net())
    meaning = declare_subject(subject, read_artifact(lower(kind)))
    inputs = {name: tensor.numpy() for name, tensor in subject.inputs.tensors.items()}
    (baseline,) = EagerRunner(meaning).run(inputs).values()
    (original,) = EagerRunner(subject).run(inputs).values()
    double = DoubleRunner(meaning)
    (truth,) = double.run(inputs).values()
    assert baseline.dtype == (np.float16 if kind == "float16 throughout" else np.float32)
    np.testing.assert_allclose(baseline, truth, rtol=1e-6, atol=1e-7)
    cost = measure_cost(original, truth)
    assert cost is not None
    assert 10 < cost.decibels < 90
    (sample,) = double.sample(inputs, 1).values()
    assert 0 < np.abs(sample - truth).max() < 4 * np.abs(original - truth).max()


class Overflows(nn.Module):
    def forward(self, x):
        return (x * 1000) @ (x * 1000).T / 1e6


def test_half_floats_are_rounded_where_the_graph_says_so(tmp_path):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    import onnxproof

    x = torch.full((2, 4), 3.0)
    made = onnxproof.export(Overflows(), (x,), out=tmp_path)
    onnx.save(convert_float_to_float16(onnx.load(made.artifact.path), keep_io_types=True), tmp_path / "half.onnx")
    (output,) = GraphModule(str(tmp_path / "half.onnx")).evaluate({"x": x.numpy()}).values()
    assert np.isinf(output).all()


def test_what_is_fed_is_rounded_where_the_graph_takes_half_floats():
    x, near = np.full((2, 20), 1.0, "f4"), np.full((2, 20), 1.0 + 2**-13, "f4")
    throughout, inside = (GraphModule(str(lower(kind))) for kind in ("float16 throughout", "float16"))
    (a, b), (c, d) = ([*map(one.take, ({"x": x}, {"x": near}))] for one in (throughout, inside))
    assert np.array_equal(a["x"], b["x"])
    assert not np.array_equal(c["x"], d["x"])
    assert np.array_equal(throughout.rounded({"x": x}, 1, 2**-24)["output"], throughout.rounded(b, 1, 2**-24)["output"])
    assert np.isinf(throughout.take({"x": np.float32([1e6])})["x"]).all()


def test_what_it_costs():
    original = np.float32([[1, 2], [4, 3], [0, 1]])
    assert measure_cost(original, original).decibels == SPOTLESS
    cost = measure_cost(original, original + np.float32([[0, 0], [0, 2], [0, 0]]))
    assert (cost.changed, cost.rows, cost.lost) == (1, 3, 0)
    assert cost.decibels == pytest.approx(10 * np.log10(31 / 4))
    lost = measure_cost(original, np.where(original == 4, np.inf, original))
    assert (lost.lost, lost.decibels) == (1, -SPOTLESS)
    assert measure_cost(original, original[:2]) is None
    assert measure_cost(np.int64([1]), np.int64([1])) is None
    assert replace(cost, changed=0) != cost


def test_a_normalisation_that_exporters_multiply_in_is_known():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4))
    net.train()(torch.randn(8, 3, 6, 6))
    net.eval()
    known, x = list_originals(net), torch.randn(2, 3, 6, 6)
    weight, bias = (torch.from_numpy(known[f"0.folded {name}"]).float() for name in ("weight", "bias"))
    torch.testing.assert_close(nn.functional.conv2d(x, weight, bias), net[1](net[0](x)), rtol=1e-4, atol=1e-5)
    assert not any(name.startswith("2.") for name in known)


def test_rows_that_come_again_are_counted_once():
    right, lower = np.eye(4), np.eye(4)[[1, 1, 2, 0]]
    every, new = measure_cost(right, lower), measure_cost(right, lower, repeated=2)
    assert (every.changed, every.rows) == (2, 4)
    assert (new.changed, new.rows, new.kinds) == (1, 2, {"3": (1, 1)})
