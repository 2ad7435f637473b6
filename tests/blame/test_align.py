"""Which value of one graph is which of another."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from onnxproof.blame.align import share_by_name, share_by_structure
from onnxproof.blame.nodes import follow
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.view import Graph


def anonymous(model):
    """Every value and node gets another name: a file of which nothing is known."""
    given = {v.name for v in (*model.graph.input, *model.graph.output)}
    names = {}
    for i, node in enumerate(model.graph.node):
        node.name = f"n{i}"
        for k, out in enumerate(node.output):
            if out not in given:
                names[out] = f"t{i}_{k}"
    for i, tensor in enumerate(model.graph.initializer):
        names[tensor.name] = f"k{i}"
        tensor.name = f"k{i}"
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    del model.graph.value_info[:]
    del model.metadata_props[:]


def test_an_extra_node_does_not_break_the_alignment(exported):
    model = onnx.load(exported("gelu_mlp"))
    names = {i.name: np.zeros((2, i.type.tensor_type.shape.dim[1].dim_value)) for i in model.graph.input}
    right: dict[str, np.ndarray] = {}
    follow(Evaluator.exact(model, keep_lossy_casts=True), names, {}, right)
    other = onnx.ModelProto()
    other.CopyFrom(model)
    place = next(i for i, n in enumerate(other.graph.node) if n.op_type == "Gelu")
    gelu = other.graph.node[place]
    other.graph.node.insert(place, helper.make_node("Neg", [gelu.input[0]], ["extra"], "extra"))
    other.graph.node[place + 1].input[0] = "extra"
    anonymous(other)
    mine: dict[str, np.ndarray] = {}
    follow(Evaluator.exact(other, keep_lossy_casts=True), names, {}, mine)
    pairs = share_by_structure(Graph(other), {k: v.shape for k, v in mine.items()}, Graph(model), right)
    assert share_by_name(Graph(other), right) < 0.5
    ops = {n.output[0]: n.op_type for n in (*other.graph.node, *model.graph.node)}
    assert all(ops[a] == ops[b] for a, b in pairs.items())
    assert len(pairs) == len(model.graph.node)


def test_another_operator_of_the_same_shape_is_the_same_value():
    ends = "(float[2] x) => (float[2] y)"
    head = '<ir_version: 10, opset_import: ["" : 20]> g '
    mine = Graph(onnx.parser.parse_model(f"{head}{ends} {{ p = Neg(x) q = Sin(p) y = Abs(q) }}"))
    other = Graph(onnx.parser.parse_model(f"{head}{ends} {{ a = Neg(x) b = Cos(a) y = Abs(b) }}"))
    values = {name: np.zeros(2) for name in ("a", "b", "y")}
    shapes = {"p": (2,), "q": (2,), "y": (2,)}
    assert share_by_structure(mine, shapes, other, values) == {"p": "a", "q": "b", "y": "y"}
    assert share_by_structure(mine, {**shapes, "q": (3,)}, other, values) == {"p": "a", "y": "y"}
