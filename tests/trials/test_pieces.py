"""The cut: which values both sides compute, and what lies between them."""

from __future__ import annotations

import numpy as np
import onnx
import torch
from torch import nn

from onnxproof.graph.evaluator import Evaluator
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.trials.calls import record
from onnxproof.trials.pieces import Cut, find_common, keep_common, list_rivals, show_values


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x / 4.0 * 8.0, max=6.0)


FOLDED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y) <float two = {2.0}, float six = {6.0}, float low = {-100.0}>
{ z = Mul(x, two)  y = Clip(z, low, six) }"""


def cut_of(text: str, x: np.ndarray, module: type[nn.Module] = Scaled) -> Cut:
    program = record(DoubleRunner(make_subject(module().eval(), (torch.from_numpy(x),))), {"x": x})
    evaluator = Evaluator.exact(onnx.parser.parse_model(text), keep_lossy_casts=True)
    values = show_values(evaluator, {"x": x.astype(np.float64)})
    return Cut(evaluator, program, values, find_common(evaluator, values, program, {}))


def test_what_an_exporter_folds_lies_inside_a_piece():
    pieces = cut_of(FOLDED, np.array([[1, 2, 30], [4, 5, 6]], np.float32)).pieces()
    assert pieces["z"] is not None
    assert pieces["y"] is not None
    assert [name for name, _ in pieces["z"].frontier] == ["x"]
    assert len(pieces["z"].calls) == 2  # the division and the product
    assert [name for name, _ in pieces["y"].frontier] == ["z"]


def test_equal_values_are_paired_in_their_order():
    """A clamp that nothing meets gives what it takes."""
    cut = cut_of(FOLDED, np.array([[1, 2, 0], [1, 0.5, 0.25]], np.float32))
    clamp = next(call for call in cut.program.calls if "clamp" in str(call.func))
    assert cut.common["y"] == clamp.gives[0]
    assert cut.common["z"] == clamp.takes[0]


def test_what_agrees_by_chance_is_not_common():
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    chance = FOLDED.replace("z = Mul(x, two)", "z = Add(x, same)")
    chance = chance.replace("<float two", "<float[2,3] same = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, float two")
    cut = cut_of(chance, x)
    assert "z" in cut.common
    other = np.full((2, 3), 2.5, np.float32)
    program = record(DoubleRunner(make_subject(Scaled().eval(), (torch.from_numpy(other),))), {"x": other})
    values = show_values(cut.evaluator, {"x": other.astype(np.float64)})
    assert "z" not in keep_common(cut.common, values, dict(enumerate(program.values)))


class Step(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.heaviside(x, torch.tensor(0.5))


STEPS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y) <float zero = {0.0}, float one = {1.0}, float half = {0.5}>
{ low = Less(x, zero)  step = Where(low, zero, one)  at = Equal(x, zero)  y = Where(at, half, step) }"""


def test_a_step_inside_an_operator_that_agrees_by_chance_is_not_its_result():
    """Nothing is zero here, so that the inner step looks like the whole function."""
    x = np.array([[1, -2, 3], [4, -5, 6]], np.float32)
    program = record(DoubleRunner(make_subject(Step().eval(), (torch.from_numpy(x),))), {"x": x})
    evaluator = Evaluator.exact(onnx.parser.parse_model(STEPS), keep_lossy_casts=True)
    values = show_values(evaluator, {"x": x.astype(np.float64)})
    cut = Cut(evaluator, program, values, find_common(evaluator, values, program, {}))
    assert "step" in cut.common
    step = cut.cut("step")
    assert step is not None
    rivals = [piece for _, (piece, *_) in list_rivals(cut, step)]
    assert "y" in [piece.value for piece in rivals]
    assert {piece.number for piece in rivals} == {cut.common["step"]}


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = (x * 2.0).unbind(0)
        return torch.relu(first + torch.tanh(second))


HALVES = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[3] y) <float two = {2.0}, int64 zero = {0}, int64 one = {1}>
{ z = Mul(x, two)  first = Gather(z, zero)  second = Gather(z, one)  t = Tanh(second)  s = Add(first, t)  y = Relu(s) }"""


def test_what_a_call_gives_beside_what_is_needed_of_it_is_not_given_to_the_piece():
    """One half is not known to be common: then the call that gives both is in the piece, and the other half with it."""
    x = np.array([[1, -2, 3], [4, -5, 6]], np.float32)
    program = record(DoubleRunner(make_subject(Halves().eval(), (torch.from_numpy(x),))), {"x": x})
    evaluator = Evaluator.exact(onnx.parser.parse_model(HALVES), keep_lossy_casts=True)
    values = show_values(evaluator, {"x": x.astype(np.float64)})
    common = find_common(evaluator, values, program, {})
    whole = Cut(evaluator, program, values, common).cut("s")
    assert whole is not None
    assert [name for name, _ in whole.frontier] == ["first", "t"]
    known = {name: number for name, number in common.items() if name not in ("second", "t")}
    piece = Cut(evaluator, program, values, known).cut("s")
    assert piece is not None
    assert [name for name, _ in piece.frontier] == ["z"]


class Asked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > 0) | (x * 2 > 1)


ASKED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N] x) => (bool[N] y) <float two = {2.0}, float zero = {0.0}, float one = {1.0}>
{ twice = Mul(x, two)  above = Greater(twice, one)  positive = Greater(x, zero)  y = Or(positive, above) }"""


def test_a_few_answers_of_yes_and_no_are_the_same_by_chance():
    def find(x: np.ndarray) -> dict[str, int]:
        program = record(DoubleRunner(make_subject(Asked().eval(), (torch.from_numpy(x),))), {"x": x})
        evaluator = Evaluator.exact(onnx.parser.parse_model(ASKED), keep_lossy_casts=True)
        return find_common(evaluator, show_values(evaluator, {"x": x.astype(np.float64)}), program, {})

    assert find(np.array([1, -1, 2], np.float32)).keys() == {"x", "twice"}
    assert find(np.linspace(-1, 1, 99, dtype=np.float32)).keys() == {"x", "twice", "above", "positive", "y"}


class Leftover(nn.Module):
    """A sum that nobody asks for is, of positive numbers, one that only the graph has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _ = x.abs() + 1
        three = torch.full_like(x, 3.0)
        return torch.addcmul(three, x.relu(), three)


def test_what_the_module_computes_for_nothing_is_not_common():
    graph = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2,3] y) <float one = {1.0}, float three = {3.0}>
    { r = Relu(x)  a = Add(r, one)  y = Mul(a, three) }"""
    cut = cut_of(graph, np.array([[1, 2, 3], [4, 5, 6]], np.float32), Leftover)
    assert "a" not in cut.common
    assert cut.cut("y") is not None
