"""An ONNX file behind the interface of a module."""

from __future__ import annotations

import copy

import numpy as np
import onnx
import pytest
import torch

from onnxproof.errors import InputError
from onnxproof.subject.onnx_module import GraphModule, make_examples


def saved(folder, body: str, ends: str) -> str:
    text = f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return str(folder / "m.onnx")


def test_open_dimensions_of_one_name_get_one_size(tmp_path):
    ends = "(float[batch, n] x, int64[batch, 3] ids, bool[n, other] mask) => (float[batch, n] y)"
    examples = make_examples(saved(tmp_path, "y = Neg(x)", ends))
    assert {name: tuple(tensor.shape) for name, tensor in examples.items()} == {
        "x": (2, 8),
        "ids": (2, 3),
        "mask": (8, 8),
    }
    assert [tensor.dtype for tensor in examples.values()] == [torch.float32, torch.int64, torch.bool]


def test_text_cannot_be_fed(tmp_path):
    with pytest.raises(InputError, match="the input words is no tensor of numbers"):
        make_examples(saved(tmp_path, "y = Identity(words)", "(string[2] words) => (string[2] y)"))


def test_it_runs_in_its_own_dtypes_and_exactly(tmp_path):
    module = GraphModule(saved(tmp_path, "a = Exp(x) y = Log(a)", "(float[n] x) => (float[n] y)"))
    x = torch.linspace(0.1, 1, 50)
    assert module(x=x)["y"].dtype == torch.float32
    module.exactly = True
    assert (module(x=x.double())["y"] - x.double()).abs().max() < 1e-14
    other = copy.deepcopy(module)
    assert (other.path, other.exactly, other.file_name) == (module.path, False, "m.onnx")


def test_noise_is_put_on_what_rounds_and_on_nothing_else(tmp_path):
    module = GraphModule(saved(tmp_path, "y = Neg(x) z = Exp(x)", "(double[n] x) => (double[n] y, double[n] z)"))
    x = np.linspace(0.1, 1, 50)
    rounded = module.rounded({"x": x}, seed=0, unit=1e-3)
    assert (rounded["y"] == -x).all()
    off = np.abs(rounded["z"] / np.exp(x) - 1)
    assert 1e-4 < off.max() <= 2e-3


def test_a_scalar_stays_a_scalar(tmp_path):
    path = saved(tmp_path, "y = ReduceSum <keepdims = 0> (x)", "(float[3] x) => (float y)")
    assert GraphModule(path)(x=torch.ones(3))["y"].shape == ()
