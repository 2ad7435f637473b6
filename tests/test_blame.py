"""The step, the node, the module, the line."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

import models
import onnxproof
from test_faults import biased, one_percent, other_epsilon, tanh_gelu


def first(proof):
    return next(f for f in proof.findings if f.evidence.get("culprits") or f.evidence.get("rewrite"))


@pytest.mark.parametrize(
    ("name", "fault", "op", "module"),
    [
        ("gelu_mlp", tanh_gelu, "Gelu", "1"),
        ("gelu_mlp", other_epsilon, "LayerNormalization", "2"),
        ("tutorial", biased, "Gemm", "0"),
        pytest.param("cnn", one_percent, "Conv", None, marks=pytest.mark.slow),
    ],
)
def test_the_changed_node_is_named_first(name, fault, op, module, mutated, verify):
    finding = first(verify(name, mutated(name, fault)))
    top = finding.evidence["culprits"][0]
    assert top["op"] == op
    assert finding.where.node == top["node"]
    if module is not None:
        assert finding.where.module == module


def test_two_faults_are_both_named(mutated, verify):
    def both(model: onnx.ModelProto) -> None:
        tanh_gelu(model)
        for tensor in model.graph.initializer:
            if tensor.name == "3.weight":
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))

    culprits = first(verify("gelu_mlp", mutated("gelu_mlp", both))).evidence["culprits"]
    assert {c["op"] for c in culprits[:2]} == {"Gelu", "Gemm"}


def test_the_exporters_optimiser_is_blamed_for_the_epsilon_and_the_line_is_named(tmp_path):
    finding = first(onnxproof.prove(*models.epsilon(), out=tmp_path))
    assert finding.stage == "simplify"
    assert finding.where.file.endswith("models.py")
    assert "1e-8" in finding.evidence["culprits"][0]["text"]


class PaddedPool(nn.Module):
    """onnxruntime folds the zero padding into the pooling, which pads with −inf."""

    def forward(self, x):
        return F.max_pool2d(F.pad(x - 3, (1, 1, 1, 1)), 3, 2)


def test_an_onnxruntime_rewrite_is_named(tmp_path):
    finding = first(onnxproof.prove(PaddedPool(), (torch.randn(2, 3, 8, 8),), out=tmp_path))
    assert finding.stage == "optimize"
    assert finding.evidence["rewrite"] == "Pad_Fusion"
    assert 'disabled_optimizers=["Pad_Fusion"]' in finding.help


class ByShape(nn.Module):
    """torch.export takes the example's branch, whatever the size."""

    def forward(self, x):
        if x.shape[0] > 2:
            return x * 2
        return x + 1


def test_a_branch_on_a_size_is_blamed_on_the_capture(tmp_path):
    proof = onnxproof.prove(ByShape(), (torch.randn(4, 3),), out=tmp_path)
    assert proof.verdict == "block"
    grave = [f for f in proof.findings if f.code in ("OX201", "OX104")]
    assert grave
    assert all(f.stage == "capture" for f in grave)


def test_nothing_is_blamed_on_a_correct_model(exported, verify):
    assert verify("mlp", exported("mlp")).blame == {}


def test_a_blame_survives_a_saved_proof(tmp_path):
    proof = onnxproof.prove(*models.epsilon(), out=tmp_path)
    proof.save(tmp_path / "proof.json")
    again = onnxproof.Proof.load(tmp_path / "proof.json")
    assert again.blame == proof.blame
    assert first(again.judged(again.policy)).where.line == first(proof).where.line


def test_the_command_line_shows_the_culprits(inside, tmp_path):
    from conftest import target

    result = inside("locate", target("epsilon"), "--quiet")
    assert result.returncode == 1
    assert "stage simplify" in result.stdout
    assert "models.py" in result.stdout
    assert len(result.stdout.splitlines()) <= 25
    nothing = inside("locate", target("tutorial"), "--quiet")
    assert "nothing to locate" in nothing.stdout


class Floored(torch.nn.Module):
    def forward(self, x):
        return torch.div(x, 0.1, rounding_mode="floor")


def test_a_culprit_with_a_known_form_says_what_to_write_instead(tmp_path):
    proof = onnxproof.prove(Floored().eval(), (torch.randn(2, 8),), out=tmp_path)
    finding = next(f for f in proof.findings if f.code == "OX201")
    assert "Instead: `onnxproof.rewrites.floor_divide(a, b)`" in finding.help
