"""TARGET, what it names, and the inputs beside it."""

from __future__ import annotations

import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from onnxproof.errors import TargetError, UserError
from onnxproof.subject.target import load_target, resolve, split_inputs

X = torch.ones(2, 3)


def test_a_module_a_class_a_function_and_a_pair():
    linear = nn.Linear(3, 2)
    assert resolve(linear, "it") == (linear, None)
    assert isinstance(resolve(nn.Identity, "it")[0], nn.Identity)
    assert resolve(lambda: (linear, (X,)), "it") == (linear, (X,))
    assert resolve([linear, {"input": X}], "it") == (linear, {"input": X})


@pytest.mark.parametrize(("value", "got"), [((1, 2, 3), "a tuple of 3"), (lambda: "text", "a str"), (X, "a Tensor")])
def test_anything_else_is_told(value, got):
    with pytest.raises(TargetError, match=f"it gave {got}; expected a torch.nn.Module"):
        resolve(value, "it")


def test_a_function_that_raises_names_its_line():
    def make():
        raise SystemExit("no weights")

    with pytest.raises(TargetError, match=r"it\(\) raised SystemExit: no weights \(test_target.py:\d+\)"):
        resolve(make, "it")


def test_a_file_that_is_no_module_says_what_it_was_taken_for(tmp_path):
    for suffix, kind in ((".pt", "TorchScript"), (".pt2", "exported program")):
        (tmp_path / f"m{suffix}").write_bytes(b"weights")
        with pytest.raises(TargetError, match=rf"cannot be loaded as an? {kind}.*plain weights needs its code"):
            load_target(str(tmp_path / f"m{suffix}"))


def test_a_scripted_file_is_named_after_itself(tmp_path):
    torch.jit.save(torch.jit.script(nn.Linear(3, 2)), tmp_path / "small.pt")
    module, name = load_target(str(tmp_path / "small.pt"))
    assert (name, tuple(module(X).shape)) == ("small", (2, 2))


def test_a_part_of_a_scripted_file(tmp_path):
    torch.jit.save(torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), tmp_path / "whole.jit")
    module, name = load_target(f"{tmp_path / 'whole.jit'}:0")
    assert (name, tuple(module(X).shape)) == ("0", (2, 2))
    with pytest.raises(TargetError, match="has no part 'head'; its parts are '0', '1'"):
        load_target(f"{tmp_path / 'whole.jit'}:head")


class Pair(nn.Module):
    def forward(self, both, options):
        return both[0]


class Any(nn.Module):
    def forward(self, *args, **kwargs):
        return args[0]


@pytest.mark.parametrize(
    ("module", "inputs", "expected"),
    [
        (nn.Identity(), X, ((X,), {})),
        (nn.Identity(), [X], ((X,), {})),
        (nn.Identity(), {"input": X}, ((), {"input": X})),
        (nn.Identity(), ((X,), {"scale": 2}), ((X,), {"scale": 2})),
        (Any(), ((X,), {"scale": 2}), ((X,), {"scale": 2})),
        (Pair(), ((X,), {"scale": 2}), (((X,), {"scale": 2}), {})),
    ],
)
def test_positional_and_keyword_inputs(module, inputs, expected):
    assert split_inputs(inputs, module) == expected


@pytest.mark.parametrize(
    ("shape", "content", "told"),
    [
        ([2], b"", "m.onnx cannot be read: m.onnx holds no graph.*OX301"),
        ([2], b"rubbish", "m.onnx cannot be read: m.onnx is not an ONNX model.*OX301"),
        ([10**6, 10**6], None, r"the input 'x' has the shape \[1000000, 1000000\]: no example of that size"),
        ([-4], None, r"the input 'x' has the shape \[-4\]: no example"),
    ],
)
def test_a_graph_that_cannot_be_a_side_of_a_comparison(shape, content, told, tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(model if content is None else content)
    with pytest.raises(UserError, match=told):
        load_target(str(tmp_path / "m.onnx"))


@pytest.mark.parametrize("suffix", [".pt", ".ts", ".jit", ".torchscript"])
def test_a_script_under_any_of_its_names(suffix, tmp_path):
    path = tmp_path / f"net{suffix}"
    torch.jit.save(torch.jit.script(nn.Linear(2, 3)), path)
    loaded, name = load_target(str(path))
    assert isinstance(loaded, torch.jit.ScriptModule)
    assert name == "net"


def test_positional_and_keyword_inputs_together():
    module, inputs = resolve((nn.Linear(2, 3), (torch.ones(1, 2),), {"scale": 2}), "make")
    assert split_inputs(inputs, module)[1] == {"scale": 2}


def test_positional_and_keyword_inputs_that_are_given_apart_stay_apart():
    module, inputs = resolve((Pair(), ((X, None),), {"options": X}), "it")
    assert split_inputs(inputs, module) == (((X, None),), {"options": X})
