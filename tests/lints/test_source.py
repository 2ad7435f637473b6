"""OX145 beyond `forward`: for each place a module that triggers it, with its line, and one that looks alike and is right."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import source_helpers
from onnxproof.lints.module import lint_module
from onnxproof.lints.source import find_fixed_spots, find_preprocessing_spots
from onnxproof.subject.assembly import make_subject


def lines(module, inputs=None):
    """What is marked, as texts without blanks at the ends."""
    findings = lint_module(make_subject(module.eval(), inputs or (torch.randn(4, 8),)))
    found = [finding for finding in findings if finding.code == "OX145"]
    return [line for finding in found for line in finding.evidence["lines"]]


def below(x):
    return x * x.max().item()


def between(x):
    return below(x) + 1


def counted(number):
    return int(number) + len("abc")


class Helper(nn.Module):
    def forward(self, x):
        return self._scaled(x)

    def _scaled(self, value):
        return value / len(value)


class HelperOfSettings(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.layers = 8.0, nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x):
        return self._run(x, self.layers) * int(self.hidden)

    def _run(self, x, layers):
        for place in range(len(layers)):
            x = layers[place](x)
        return x.view(x.shape[0], -1) / len(self.layers)


class Overrides(Helper):
    def _scaled(self, value):
        return super()._scaled(value) + 1


class OverridesWholly(Helper):
    def _scaled(self, value):
        return value / value.shape[0]


class Chain(nn.Module):
    def forward(self, x):
        return between(x)


class Elsewhere(nn.Module):
    def forward(self, x):
        return source_helpers.halved(x)


class ElsewhereFine(nn.Module):
    def forward(self, x):
        return source_helpers.doubled(x) + counted(3)


class Recursive(nn.Module):
    def forward(self, x, depth=2):
        return self.forward(x, depth - 1) if depth else x


class Nested(nn.Module):
    def forward(self, x):
        def inner(t):
            return t / len(t)

        return inner(x)


class NestedFine(nn.Module):
    def forward(self, x):
        def inner(parts):
            return parts[0] / len(parts)

        return inner([x, x])


class Lambdas(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 2, lambda t: t / int(t.shape[0]), lambda t: t.clone(), (x,))


class LambdasFine(nn.Module):
    def forward(self, x):
        order = sorted([1, 2], key=lambda t: -int(t))
        return x * order[0]


class Loops(nn.Module):
    def forward(self, x):
        total = 0
        for i in range(x.shape[0]):
            total = total + x[i]
        return total


class LoopsOverUnpacked(nn.Module):
    def forward(self, x):
        batch, _ = x.shape
        return sum(x[i] for i in range(batch))


class LoopsOverLength(nn.Module):
    def forward(self, x):
        return sum(x[i].sum() for i in range(len(x)))


class LoopsOverWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(3, 8))

    def forward(self, x):
        for i in range(self.weights.shape[0]):
            x = x * self.weights[i]
        return x * torch.zeros(x.size(0), 8) * int(self.weights.shape[0])


class Numpy(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.tanh(x.detach().numpy()))


class NumpyOfConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x):
        return x * torch.from_numpy(np.tanh(self.scale.numpy()))


class TensorOfSize(nn.Module):
    def forward(self, x):
        return x / torch.tensor(x.shape[1])


class TensorOfNumber(nn.Module):
    def forward(self, x):
        return x / torch.tensor(3.0) + torch.zeros(x.shape[0], 8)


class Decides(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() > 0:
            return y
        return x


class DecidesShortly(nn.Module):
    def forward(self, x):
        return x if not torch.any(x > 0) else x + 1


class DecidesOnSettings(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(3))
        self.mode = "mean"

    def forward(self, x, mask=None):
        if mask is not None and x.shape[0] > 0 and self.mode == "mean":
            x = x * mask
        if self.training and x.max() > 5:
            raise ValueError("too large")
        if not torch.jit.is_tracing() and not torch.compiler.is_exporting() and x.min() < -100:
            raise ValueError("too small")
        return x.mean(-1, keepdim=True) if x.mean(-1, keepdim=True).shape[-1] == 1 else x


class ListOfTensors(nn.Module):
    def forward(self, levels):
        return sum(levels[i] for i in range(len(levels)))


TRIGGERS = [
    (Helper, "return value / len(value)"),
    (Overrides, "return value / len(value)"),
    (Chain, "return x * x.max().item()"),
    (Elsewhere, "n = int(x.shape[0] / 2)"),
    (Nested, "return t / len(t)"),
    (Lambdas, "return torch.cond(x.shape[0] > 2, lambda t: t / int(t.shape[0]), lambda t: t.clone(), (x,))"),
    (Loops, "for i in range(x.shape[0]):"),
    (LoopsOverUnpacked, "return sum(x[i] for i in range(batch))"),
    (LoopsOverLength, "return sum(x[i].sum() for i in range(len(x)))"),
    (Numpy, "return torch.from_numpy(np.tanh(x.detach().numpy()))"),
    (TensorOfSize, "return x / torch.tensor(x.shape[1])"),
    (Decides, "if y.sum() > 0:"),
    (DecidesShortly, "return x if not torch.any(x > 0) else x + 1"),
]
NEAR_MISSES = [
    HelperOfSettings,
    OverridesWholly,
    ElsewhereFine,
    Recursive,
    NestedFine,
    LambdasFine,
    LoopsOverWeights,
    NumpyOfConstants,
    TensorOfNumber,
    DecidesOnSettings,
]


@pytest.mark.parametrize(("kind", "line"), TRIGGERS, ids=[row[0].__name__ for row in TRIGGERS])
def test_the_line_is_marked(kind, line):
    found = lines(kind())
    assert len(found) == 1, found
    assert f": {line}  (" in found[0]
    file, number, _ = found[0].split(":", 2)
    assert Path(file).read_text().splitlines()[int(number) - 1].strip() == line


@pytest.mark.parametrize("kind", NEAR_MISSES, ids=[kind.__name__ for kind in NEAR_MISSES])
def test_what_looks_alike_is_not_marked(kind):
    assert lines(kind()) == []


def test_a_list_of_tensors_may_have_a_length():
    assert lines(ListOfTensors(), ([torch.randn(4, 8), torch.randn(4, 8)],)) == []


def test_a_function_that_several_modules_call_is_told_once():
    assert len(lines(nn.Sequential(Chain(), Chain(), Helper()))) == 2


def test_installed_packages_are_not_followed(tmp_path, monkeypatch):
    """The same helper is followed in a file of the user's and not in site-packages."""
    text = "def scaled(x):\n    return x * x.max().item()\n"
    module = textwrap.dedent("""
        from torch import nn
        import {name}
        class Calls(nn.Module):
            def forward(self, x):
                return {name}.scaled(x)
    """)
    found = {}
    for name, folder in (("ours_145", tmp_path), ("theirs_145", tmp_path / "site-packages")):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        (tmp_path / f"calls_{name}.py").write_text(module.format(name=name))
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.syspath_prepend(str(tmp_path))
        made = __import__(f"calls_{name}")
        found[name] = lines(made.Calls())
        sys.modules.pop(name), sys.modules.pop(f"calls_{name}")
    assert len(found["ours_145"]) == 1
    assert found["theirs_145"] == []


class Branches(nn.Module):
    def forward(self, x):
        if self.training and x.sum() > 0:
            x = x * x.max().item()
        while not x.abs().max() < 1:
            x = x / 2
        return x.view(4, -1)


def test_a_spot_has_its_line_and_what_it_does():
    spots = find_fixed_spots(Branches.forward, Branches(), batch=4)
    assert [spot.what for spot in spots] == [
        "`while` decides on a tensor's value (.max())",
        ".view(4, …) writes the example's batch size into the graph",
    ]
    assert spots[1].text == "return x.view(4, -1)"
    assert Path(__file__).read_text().splitlines()[spots[1].line - 1].strip() == spots[1].text
    assert [spot.what for spot in find_fixed_spots(Branches.forward, Branches(), batch=1)] == [spots[0].what]
    assert find_fixed_spots(len, None, batch=4) == []


def test_what_prepares_inputs_beside_the_module(tmp_path):
    (tmp_path / "m.py").write_text(
        "scaler = sklearn.StandardScaler()\nother = Thing()\ndef normalize_rows(x): ...\ndef train(x): ...\n"
        "class Net:\n    def forward(self, x): return self.standardise(x)\n    def standardise(self, x): ...\n    def preprocess(self, x): ...\n"
    )
    whats = [spot.what for spot in find_preprocessing_spots(tmp_path / "m.py", {"Net"})]
    names = ["StandardScaler", "normalize_rows()", "preprocess()"]
    assert whats == [f"{name} prepares inputs outside the module" for name in names]
    assert len(find_preprocessing_spots(tmp_path / "m.py", {"Other"})) == 2
    assert find_preprocessing_spots(tmp_path / "none.py", {"Net"}) == []
