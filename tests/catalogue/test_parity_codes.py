"""OX0xx and OX2xx that no other test triggers: a module or file that does, and one that looks alike and is right."""

from __future__ import annotations

import pytest
import torch
from benchmarks.failures import models as failing
from onnx import helper
from torch import nn

import onnxproof


class Ties(nn.Module):
    """Two sums that are equal, in opposite order: which is larger is decided by rounding."""

    def __init__(self, apart):
        super().__init__()
        self.apart = apart

    def forward(self, x):
        forth = x.cumsum(-1)[:, -1]
        back = x.flip(-1).sum(-1) + self.apart
        return torch.stack([forth, back], -1).argmax(-1)


class HardCoded(nn.Module):
    def forward(self, x):
        return (x.float() * 2).tanh()


def codes(proof):
    return {finding.code for finding in proof.findings}


def prove(made, tmp_path, **options):
    return codes(onnxproof.prove(*made, out=tmp_path, **{"budget": 2.0, **options}))


def linear():
    torch.manual_seed(0)
    return nn.Linear(8, 4).eval(), (torch.randn(3, 8),)


def pooled():
    return nn.MaxPool1d(2).eval(), (torch.randn(2, 3, 8),)


PROVED = [
    ("OX005", lambda: (linear(), {"budget": 0.001}), lambda: (linear(), {"budget": 60.0})),
    (
        "OX111",
        lambda: (failing.cond_returns_its_input_remedied(), {}),
        lambda: ((HardCoded().eval(), (torch.randn(3, 8),)), {}),
    ),
    (
        "OX208",
        lambda: ((Ties(0.0).eval(), (torch.randn(64, 512),)), {}),
        lambda: ((Ties(1e5).eval(), (torch.randn(64, 512),)), {}),
    ),
    ("OX209", lambda: (pooled(), {}), lambda: (linear(), {})),
    ("OX223", lambda: (failing.squeezes_the_batch(), {}), lambda: (failing.squeezes_the_batch_remedied(), {})),
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "trigger", "near_miss"), PROVED, ids=[row[0] for row in PROVED])
def test_a_proof_triggers_its_code_and_the_near_miss_does_not(code, trigger, near_miss, tmp_path):
    made, options = trigger()
    assert code in prove(made, tmp_path, **options)
    made, options = near_miss()
    assert code not in prove(made, tmp_path / "near", **options)


def test_ox223_names_the_node_and_the_line(tmp_path):
    proof = onnxproof.prove(*failing.squeezes_the_batch(), out=tmp_path, budget=2.0)
    finding = next(f for f in proof.findings if f.code == "OX223")
    assert finding.where.node
    assert str(finding.where.file).endswith("models.py")


def test_ox114_a_graph_that_the_reference_cannot_evaluate(mutated, verify, exported):
    def foreign(model):
        node = next(node for node in model.graph.node if node.op_type == "Tanh")
        node.op_type, node.domain = "FastGelu", "com.microsoft"
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))

    assert "OX114" in codes(verify("mlp", mutated("mlp", foreign), budget=2.0))
    assert "OX114" not in codes(verify("mlp", exported("mlp"), budget=2.0))


class Ignores(nn.Module):
    def __init__(self, second):
        super().__init__()
        self.second = second

    def forward(self, x, y):
        return x * 2 + y if self.second else x * 2


def test_ox226_an_input_that_nothing_depends_on(tmp_path):
    inputs = (torch.randn(2, 3), torch.randn(2, 3))
    proof = onnxproof.prove(Ignores(False).eval(), inputs, exporter="torchscript", out=tmp_path, budget=2.0)
    assert "OX226" in codes(proof)
    assert "OX223" not in codes(proof)
    assert proof.verdict == "ship"
    used = onnxproof.prove(Ignores(True).eval(), inputs, exporter="torchscript", out=tmp_path / "near", budget=2.0)
    assert "OX226" not in codes(used)
