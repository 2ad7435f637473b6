"""The heart: silent changes are found, correct exports are not accused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
import onnxproof
from conftest import codes


def edit_weight(model: onnx.ModelProto, shape_rank: int, change) -> None:
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == shape_rank and array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(change(array.copy()), tensor.name))
            return
    raise AssertionError("no such weight")


def tanh_gelu(model: onnx.ModelProto) -> None:
    node = next(n for n in model.graph.node if n.op_type == "Gelu")
    del node.attribute[:]
    node.attribute.append(onnx.helper.make_attribute("approximate", "tanh"))


def other_epsilon(model: onnx.ModelProto) -> None:
    node = next(n for n in model.graph.node if n.op_type == "LayerNormalization")
    next(a for a in node.attribute if a.name == "epsilon").f = 1e-6


def half_weights(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16).astype(np.float32), tensor.name))


def one_percent(model: onnx.ModelProto) -> None:
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[3] *= 1.01
        return array

    edit_weight(model, 4, change)


def biased(model: onnx.ModelProto) -> None:
    edit_weight(model, 1, lambda array: array + np.float32(0.05))


@pytest.mark.parametrize("name", models.CORRECT)
@pytest.mark.parametrize("level", [pytest.param("disable", marks=pytest.mark.slow), "all"])
def test_correct_exports_ship(name, level, exported, verify):
    proof = verify(name, exported(name), optimization=level)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]
    assert proof.compared >= 15
    assert all(c.noise is not None for case in proof.cases if case.fair for c in case.outputs)


@pytest.mark.parametrize(
    ("name", "fault"),
    [("gelu_mlp", tanh_gelu), ("gelu_mlp", other_epsilon), ("mlp", half_weights), ("cnn", one_percent)],
    ids=["gelu-tanh", "layernorm-epsilon", "float16-weights", "one-conv-weight"],
)
def test_silent_changes_are_found(name, fault, mutated, verify):
    proof = verify(name, mutated(name, fault))
    assert proof.verdict in ("review", "block")
    assert codes(proof, "review", "block") & {"OX201", "OX202", "OX203"}


def test_a_difference_of_0_05_blocks(mutated, verify):
    proof = verify("tutorial", mutated("tutorial", biased))
    assert proof.verdict == "block"
    finding = next(f for f in proof.findings if f.code == "OX201")
    assert finding.where.output == "output"
    assert finding.evidence["max_abs"] > 0.01
    assert finding.evidence["worst"]


def test_a_tolerance_that_admits_the_change_does_not_hide_it(mutated, verify):
    proof = verify("gelu_mlp", mutated("gelu_mlp", tanh_gelu), atol=0.1, rtol=0.1)
    assert proof.verdict == "review"


@pytest.mark.parametrize(
    "name", ["long_sums", "chaos", "hard_coded", "half", "double", "lookup", "discrete", "structured"]
)
def test_noise_is_not_accused(name, tmp_path):
    proof = onnxproof.prove(*getattr(models, name)(), out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]


@pytest.mark.slow
def test_an_ill_conditioned_model_breaks_a_promised_tolerance(tmp_path):
    proof = onnxproof.prove(*models.chaos(), out=tmp_path, atol=1e-6, rtol=1e-6)
    assert codes(proof, "review", "block") == {"OX204"}
    assert proof.verdict == "review"


def test_an_epsilon_deleted_by_the_exporter_blocks(tmp_path):
    proof = onnxproof.prove(*models.epsilon(), out=tmp_path)
    assert proof.verdict == "block"
    finding = next(f for f in proof.findings if f.code == "OX205")
    assert "zeros" in str(finding.evidence["cases"])
