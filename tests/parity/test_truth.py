"""What rounding explains, asked in order of cost, and the graph in float64 against the truth."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import models
from onnxproof.errors import Rejected
from onnxproof.graph.view import Graph
from onnxproof.parity.comparison import compare
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.truth import Effort, GraphInFloat64, Truth, limit_time
from onnxproof.request.request import Limits
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


@pytest.fixture
def mlp():
    subject = make_subject(*models.mlp())
    inputs = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    return SimpleNamespace(subject=subject, inputs=inputs, eager=EagerRunner(subject), double=DoubleRunner(subject))


def judged(mlp, candidate, truth, *group, **how):
    baseline = mlp.eager.run(mlp.inputs)
    comparison = compare("output", baseline["output"], candidate)
    exact = truth.of(mlp.inputs)
    (result,), kept = truth.judge_case(mlp.inputs, exact, baseline, {"output": candidate}, [comparison], *group, **how)
    return result, kept


def judge_with(*arguments, **how):
    return judged(*arguments, **how)[0]


def test_an_ulp_is_explained_and_a_wrong_value_is_not(mlp):
    right = mlp.eager.run(mlp.inputs)["output"]
    fine, kept = judged(mlp, np.nextafter(right, np.float32(9)), Truth(mlp.eager, mlp.double, Limits()))
    assert fine.noise.method == "float64"
    assert kept is not None
    assert fine.noise.unexplained is None or fine.noise.unexplained <= 1
    wrong = right.copy()
    wrong.flat[0] += 0.5
    assert judge_with(mlp, wrong, Truth(mlp.eager, mlp.double, Limits())).noise.unexplained > 10


def test_without_float64_inputs_are_moved_by_an_ulp(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)
    result, kept = judged(mlp, wrong, Truth(mlp.eager, None, Limits()))
    assert kept is None
    assert result.noise.method == "ulp"
    assert result.noise.unexplained > 1


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


def test_an_output_that_was_wrong_often_enough_is_asked_no_more(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)
    truth = Truth(mlp.eager, mlp.double, Limits())
    asked = [
        judge_with(mlp, wrong, truth, group).noise.unexplained is not None
        for group in ("fair", "fair", "fair", "unfair")
    ]
    assert asked == [True, True, False, True]
    careful = Truth(mlp.eager, mlp.double, Limits(), Effort(settles=False))
    assert all(judge_with(mlp, wrong, careful, "fair").noise.unexplained > 1 for _ in range(3))


def test_a_glance_leaves_open_what_rounding_explains(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)
    seen = judge_with(mlp, wrong, Truth(mlp.eager, mlp.double, Limits()), "fair", glance=True)
    assert seen.noise.ratio > 100
    assert seen.noise.unexplained is None
