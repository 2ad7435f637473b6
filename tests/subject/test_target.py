"""TARGET, what it names, and the inputs beside it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from onnxproof.errors import TargetError
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
