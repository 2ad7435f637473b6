"""The graph in float64 against the truth."""

from __future__ import annotations

import time
from itertools import takewhile
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from benchmarks.zoo.tempting import self_distance
from torch import nn

import models
import onnxproof
from onnxproof.errors import Rejected
from onnxproof.graph.view import Graph
from onnxproof.graph.widening import choose_way
from onnxproof.parity.exactness import STEPS, GraphInFloat64, limit_time
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.ledger import Ledger
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


@pytest.fixture
def mlp():
    subject = make_subject(*models.mlp())
    inputs = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    return SimpleNamespace(subject=subject, inputs=inputs, double=DoubleRunner(subject))


def graph_of(mlp, path):
    graph = Graph.read(path)
    renamed = {graph.proto.graph.input[0].name: next(iter(mlp.inputs))}
    return GraphInFloat64(graph, renamed, mlp.subject.module, mlp.double)


def test_a_right_graph_is_exact_and_a_changed_one_is_not(mlp, exported, tmp_path):
    truth = mlp.double.run(mlp.inputs)
    model = onnx.load(exported("mlp"))
    outputs = {"output": model.graph.output[0].name}
    right = graph_of(mlp, exported("mlp"))
    assert right.measure(mlp.inputs, truth, outputs)["output"].ratio <= 1
    assert right.affords(Ledger(forwards=1e9), elements=10)
    assert not right.affords(Ledger(), elements=10**12)
    bias = next(t for t in model.graph.initializer if t.name.endswith("bias"))
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + np.float32(0.25), bias.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    assert graph_of(mlp, tmp_path / "wrong.onnx").measure(mlp.inputs, truth, outputs)["output"].ratio > 10


def test_outputs_of_another_form_are_not_measured(mlp, exported):
    graph = graph_of(mlp, exported("mlp"))
    truth = {"output": np.zeros((1, 2, 3))}
    name = onnx.load(exported("mlp")).graph.output[0].name
    assert graph.measure(mlp.inputs, truth, {"output": name, "absent": name}) == {}


def test_what_takes_for_ever_is_given_up():
    with pytest.raises(Rejected, match=r"not done within 0.05 s"), limit_time(0.05):
        time.sleep(5)


class Neighbours(torch.nn.Module):
    """Which of several equally near points are the nearest is nobody's to say."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = torch.nn.Linear(3, 5)

    def forward(self, points):
        nearest = torch.cdist(points, points).topk(4, largest=False).indices
        spread = points.unsqueeze(1).expand(-1, points.shape[1], -1, -1)
        near = torch.gather(spread, 2, nearest.unsqueeze(-1).expand(-1, -1, -1, 3))
        return self.head((near - points.unsqueeze(2)).mean(2) + points)


def test_a_choice_between_equals_is_excused_by_a_sample_that_chooses_so(tmp_path):
    inputs = (torch.randn(2, 20, 3),)
    proof = onnxproof.prove(Neighbours().eval(), inputs, out=tmp_path, exporter="torchscript", batch_sizes=(3,))
    assert proof.verdict == "ship"


def test_constants_are_moved_often_enough_for_many_elements(tmp_path):
    """Of a hundred thousand sums that cancel, three samples leave one that they hardly move: a folded norm was accused."""
    torch.manual_seed(1)
    conv, norm = nn.Conv2d(32, 64, 1, bias=False), nn.BatchNorm2d(64)
    with torch.no_grad():
        conv.weight -= conv.weight.mean((1, 2, 3), keepdim=True) - 3e-6
        norm.running_var.uniform_(0.5, 2.0)
        norm.weight.uniform_(0.5, 2.0)
    module = nn.Sequential(conv, norm, nn.ReLU()).eval()
    proof = onnxproof.prove(module, (torch.randn(2, 32, 4, 4),), out=tmp_path, fast=True)
    assert proof.verdict == "ship", proof.findings


class Summed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = x.softmax(-1)
        return torch.where(p.sum(-1) > 1, p.amax(-1), p.amin(-1))


def test_a_coin_that_float64_tosses_is_tossed_often_enough(tmp_path):
    """A softmax sums to one, and whether to more than one is decided by the last bit."""
    torch.manual_seed(442)
    proof = onnxproof.prove(nn.Sequential(nn.Linear(5, 9), Summed()).eval(), (torch.randn(4, 5),), out=tmp_path)
    assert proof.verdict == "ship", proof.findings


class Hazard(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = x.softmax(-1)
        left = 1 - p.cumsum(-1)
        return p / (left + p)


def test_where_float64_has_no_digit_there_is_no_truth(tmp_path):
    """What is left of one is nothing but float64's rounding, and exactly nothing on one side."""
    torch.manual_seed(437)
    proof = onnxproof.prove(nn.Sequential(nn.Linear(6, 10), Hazard()).eval(), (torch.randn(4, 6),), out=tmp_path)
    assert proof.verdict == "ship", proof.findings


class Stretched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, size=7, mode="linear", align_corners=True)


class Beyond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lerp(x, x.square(), 1.006)


@pytest.mark.parametrize("module", [Stretched(), Beyond()])
def test_numbers_that_float32_rounds_before_they_cancel_are_excused(module, tmp_path):
    """Coordinates less their whole part, and one less a weight near one: what is left has lost digits on both sides."""
    proof = onnxproof.prove(module.eval(), (torch.randn(2, 3, 12),), out=tmp_path, fast=True)
    assert proof.verdict == "ship", proof.findings


def test_a_weight_that_is_another_is_not_excused(tmp_path):
    proof = onnxproof.prove(Beyond().eval(), (torch.randn(2, 3, 12),), out=tmp_path / "right", fast=True)
    model = onnx.load(tmp_path / "right" / "model.onnx")
    for tensor in [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute)]:
        value = onnx.numpy_helper.to_array(tensor) if tensor.data_type == onnx.TensorProto.FLOAT else np.zeros(2)
        if value.size == 1 and 0 < abs(abs(float(value)) - 1) < 1:
            tensor.CopyFrom(onnx.numpy_helper.from_array(value * np.float32(1 + 1e-4), tensor.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    proof = onnxproof.verify(
        Beyond().eval(), (torch.randn(2, 3, 12),), onnx=tmp_path / "wrong.onnx", out=tmp_path, fast=True
    )
    assert proof.verdict != "ship"


def test_what_is_nothing_but_float64s_rounding_is_excused_where_constants_move_little(tmp_path):
    proof = onnxproof.prove(*self_distance(), out=tmp_path, fast=True)
    assert proof.verdict == "ship", proof.findings


def test_constants_are_moved_both_ways_before_a_graph_is_given_up():
    """The sine of a multiple of π has the sign of what π was rounded by."""
    before_rounding = takewhile(lambda step: not step[1], STEPS)
    ways = [choose_way(seed) for constants, _ in before_rounding for seed in constants]
    assert any(low > 0 for low, _ in ways)
    assert any(high < 0 for _, high in ways)


class Picked(torch.nn.Module):
    """What is looked up along the last axis, counted from the end as people write it."""

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.gather(x.exp(), -1, at)


def test_a_graph_that_picks_along_the_last_axis_is_looked_at(tmp_path):
    inputs = torch.randn(2, 5), torch.randint(0, 5, (2, 3))
    proof = onnxproof.prove(Picked().eval(), inputs, out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.cases[0].outputs[0].exactness is not None
    assert proof.trials is not None
    assert proof.trials.reason is None


def test_what_the_evaluator_refuses_is_told(tmp_path, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise ValueError("not this one")

    monkeypatch.setattr("onnxproof.graph.operators.GatherElements._run", refuse)
    inputs = torch.randn(2, 5), torch.randint(0, 5, (2, 3))
    proof = onnxproof.prove(Picked().eval(), inputs, out=tmp_path)
    [told] = [finding for finding in proof.findings if finding.code == "OX114"]
    assert told.severity == "note"
    assert "not this one" in told.evidence["reason"]
