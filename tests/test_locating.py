"""Locating: within a budget, without names, with a reproduction, and from one file to another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

import models
import onnxproof
from blame.test_align import anonymous
from onnxproof.graph.view import Graph
from test_faults import one_percent, other_epsilon, tanh_gelu


def blame_of(proof):
    return next(iter(proof.blame.values()))


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_small_budget_finds_the_same_culprit(mutated, verify):
    ample = blame_of(verify("transformer", mutated("transformer", other_epsilon)))
    scarce = blame_of(verify("transformer", mutated("transformer", other_epsilon), memory=20_000))
    assert ample.culprits[0].node == scarce.culprits[0].node
    assert ample.culprits[0].op == "LayerNormalization"


@pytest.mark.slow
def test_a_kernel_is_found_chunk_by_chunk(tmp_path):
    class Top(torch.nn.Module):
        def forward(self, x):
            return torch.nan_to_num(x.amax(-1), nan=-1.0)

    blames = [
        blame_of(onnxproof.prove(Top().eval(), (torch.randn(3, 4, 8),), out=tmp_path / str(memory), memory=memory))
        for memory in (None, 400)
    ]
    assert {blame.stage for blame in blames} == {"kernel"}
    assert blames[0].culprits[0].node == blames[1].culprits[0].node


def test_showing_values_leaves_the_graph_alone(exported):
    model = onnx.load(exported("mlp"))
    inner = model.graph.node[0].output[0]
    shown = onnx.load_from_string(Graph(model).showing([inner]))
    assert [o.name for o in shown.graph.output] == [inner]
    assert [o.name for o in model.graph.output] != [inner]


# --- without names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fault", "op"),
    [
        ("gelu_mlp", tanh_gelu, "Gelu"),
        ("gelu_mlp", other_epsilon, "LayerNormalization"),
        pytest.param("cnn", one_percent, "Conv", marks=pytest.mark.slow),
    ],
)
def test_a_file_without_any_names_is_located_by_structure(name, fault, op, mutated, verify):
    def both(model):
        fault(model)
        anonymous(model)

    blame = blame_of(verify(name, mutated(name, both)))
    assert blame.aligned == "structure"
    assert blame.culprits[0].op == op


@pytest.mark.slow
def test_a_torchscript_file_names_its_module(tmp_path):
    module, inputs = models.gelu_mlp()
    proof = onnxproof.export(module, inputs, out=tmp_path, exporter="torchscript")
    model = onnx.load(proof.artifact.path)
    other_epsilon(model)
    path = tmp_path / "changed.onnx"
    onnx.save(model, path)
    (tmp_path / "model.sourcemap.json").rename(tmp_path / "changed.sourcemap.json")
    finding = next(f for f in onnxproof.verify(module, inputs, onnx=path, out=tmp_path / "v").findings if f.where.node)
    assert "LayerNorm" in finding.where.node
    assert finding.where.module == "2"


# --- what is said about a culprit -----------------------------------------------------------------------------------


def test_a_culprit_says_what_should_be_and_what_is_and_stands_alone(mutated, verify, tmp_path):
    culprit = blame_of(verify("gelu_mlp", mutated("gelu_mlp", tanh_gelu))).culprits[0]
    assert culprit.attributes == {"approximate": "tanh"}
    assert abs(culprit.expected - culprit.got) > 1e-6
    assert culprit.cls.endswith("GELU")
    done = subprocess.run(
        [sys.executable, f"{culprit.reproduction}/reproduce.py"], capture_output=True, text=True, cwd="/", check=False
    )
    assert "worst at" in done.stdout, done.stderr
    alone = onnx.load(f"{culprit.reproduction}/node.onnx")
    assert [n.op_type for n in alone.graph.node] == ["Gelu"]
    assert "onnxproof" not in Path(f"{culprit.reproduction}/reproduce.py").read_text()


def test_of_two_culprits_the_one_that_contributes_more_comes_first(mutated, verify):
    def both(model):
        tanh_gelu(model)
        for tensor in model.graph.initializer:
            if tensor.name == "3.weight":
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.2), tensor.name))

    culprits = blame_of(verify("gelu_mlp", mutated("gelu_mlp", both))).culprits
    assert [c.op for c in culprits[:2]] == ["Gemm", "Gelu"]
    assert culprits[0].contributes > 10 * culprits[1].contributes


def test_the_way_of_the_error_and_its_birth_are_in_the_proof(tmp_path):
    proof = onnxproof.prove(*models.epsilon(), out=tmp_path)
    blame = next(b for b in proof.blame.values() if b.births)
    assert [(b.side, b.op) for b in blame.births] == [("onnxruntime", "Div")]
    assert blame.removed
    assert blame.path[0].inherited == 0
    assert onnxproof.Proof.loads(proof.dumps()).blame == proof.blame


def test_what_magnifies_rounding_is_named(tmp_path):
    class Magnified(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.exp(x) * 1000)

    proof = onnxproof.prove(
        Magnified().eval(), (torch.rand(3, 4) + 2,), range={"x": (2, 6)}, atol=1e-7, rtol=0.0, out=tmp_path
    )
    assert "OX204" in {f.code for f in proof.findings if f.weight}
    amplifiers = [step for blame in proof.blame.values() for step in blame.amplifiers]
    assert amplifiers
    assert amplifiers[0].op == "Sin"
    assert amplifiers[0].introduced > 10


@pytest.mark.slow
def test_a_node_with_a_subgraph_is_the_border(tmp_path):
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    module, inputs = Branch().eval(), (torch.ones(3, 4),)
    path = onnxproof.export(module, inputs, out=tmp_path).artifact.path
    model = onnx.load(path)

    def wrong(nodes):
        for node in nodes:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    wrong(attribute.g.node)
            if node.op_type == "Mul":
                node.op_type = "Add"

    wrong(model.graph.node)
    for function in model.functions:
        wrong(function.node)
    onnx.save(model, tmp_path / "wrong.onnx")
    proof = onnxproof.verify(module, inputs, onnx=tmp_path / "wrong.onnx", out=tmp_path / "v")
    culprit = blame_of(proof).culprits[0]
    assert culprit.op == "If"
    assert culprit.border


# --- two files ------------------------------------------------------------------------------------------------------


def test_a_file_equals_itself(exported, cli):
    done = cli("diff", exported("gelu_mlp"), exported("gelu_mlp"))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("SHIP")


def test_a_changed_file_is_blocked_and_the_node_is_named(exported, mutated, cli, tmp_path):
    done = cli("diff", exported("gelu_mlp"), mutated("gelu_mlp", one_and_a_half), "--json", "p.json")
    assert done.returncode == 1
    assert "PyTorch" not in done.stdout.replace("torch", "")
    proof = json.loads((tmp_path / "p.json").read_text())
    finding = next(f for f in proof["findings"] if f["severity"] == "block")
    assert finding["where"]["node"] == "node_linear_1"
    script = tmp_path / finding["evidence"]["counterexample"]["script"]
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd="/", check=False)
    assert shown.returncode == 1, shown.stderr
    assert "they differ by up to" in shown.stdout


def one_and_a_half(model):
    for tensor in model.graph.initializer:
        if tensor.name == "3.weight":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))


def test_another_opset_and_integer_inputs_are_the_same(exported, cli, tmp_path):
    converted = onnx.version_converter.convert_version(onnx.load(exported("lookup")), 21)
    onnx.save(converted, tmp_path / "b.onnx")
    done = cli("diff", exported("lookup"), "b.onnx")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("diff", "a.onnx", "b.txt"), "diff compares two .onnx files"),
        (("prove", "a.onnx"), "there is nothing to export"),
        (("diff", "a.onnx", "b.onnx"), "there is no file"),
    ],
)
def test_wrong_usage_of_diff(arguments, message, cli):
    done = cli(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
