"""A culprit alone: one node, its true inputs, a script."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxproof.blame.reproduce import NotAlone, reproduce
from onnxproof.graph.view import Graph


def parsed(body: str) -> Graph:
    ends = "(float[2, 2] x, bool yes) => (float[2, 2] y)"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')
    model.graph.initializer.append(numpy_helper.from_array(np.float32([[1, 2], [3, 4]]), "model/w"))
    return Graph(model)


KNOWN = {"a/1": np.array([[1.0, 0.0], [0.0, 1.0]])}


def test_the_node_stands_alone_with_its_weight_and_its_true_inputs(tmp_path):
    graph = parsed("y = Abs(x)")
    neg, gemm = graph.proto.graph.node.add(), graph.proto.graph.node.add()
    neg.CopyFrom(onnx.helper.make_node("Neg", ["x"], ["a/1"], "neg"))
    gemm.CopyFrom(onnx.helper.make_node("Gemm", ["a/1", "model/w", "a/1"], ["g"], "gemm/1", alpha=2.0))
    place = reproduce(Graph(graph.proto), "gemm/1", "g", KNOWN, np.array([[3.0, 4.0], [6.0, 9.5]]), tmp_path)
    assert place == tmp_path / "gemm_1"
    alone = onnx.load(place / "node.onnx")
    assert [i.name for i in alone.graph.input] == ["input_0"]  # read twice, fed once
    assert list(alone.graph.node[0].input) == ["input_0", "input_1", "input_0"]
    assert [t.name for t in alone.graph.initializer] == ["input_1"]
    assert [t.name for t in graph.proto.graph.initializer] == ["model/w"]
    done = subprocess.run([sys.executable, place / "reproduce.py"], capture_output=True, text=True, check=False)
    assert "expected 9.5 got 9.0" in done.stdout
    assert done.returncode == 1


def test_what_holds_a_subgraph_or_reads_unknown_values_does_not_stand_alone(tmp_path):
    branch = "y = If(yes) <then_branch = t () => (float[2] t) { t = Abs(x) }, else_branch = e () => (float[2] e) { e = Neg(x) }>"
    for body, name, value in ((branch, "y", "y"), ("a = Abs(x) y = Neg(a)", "y", "y"), ("y = Abs(x)", "z", "z")):
        with pytest.raises(NotAlone):
            reproduce(parsed(body), name, value, KNOWN, np.zeros(2), tmp_path)


def test_the_name_of_a_node_does_not_become_code(tmp_path):
    evil = 'n"""\nimport pathlib; pathlib.Path("harmed").touch()\n"""'
    graph = parsed("y = Abs(x)")
    graph.proto.graph.node[0].name = evil
    place = reproduce(Graph(graph.proto), evil, "y", {"x": np.ones((2, 2))}, np.ones((2, 2)), tmp_path)
    done = subprocess.run(
        [sys.executable, place / "reproduce.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "expected 1.0 got 1.0" in done.stdout
    assert not (tmp_path / "harmed").exists()
    tree = ast.parse((place / "reproduce.py").read_text())
    assert f"Abs node {evil}" in [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert evil not in ast.get_docstring(tree, clean=False)
