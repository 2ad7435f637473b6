"""Where nodes compute nothing that the module does: the piece, and the node that a fresh export does not have."""

from __future__ import annotations

import onnx

from onnxproof.blame.piece import name_piece
from onnxproof.graph.view import Graph
from onnxproof.proof.blame import Culprit

FRESH = """<ir_version: 8, opset_import: ["" : 18]>
g (int64[3] ids) => (float[3,2] y) <float[4,2] table = {0.,1.,2.,3.,4.,5.,6.,7.}>
{ y = Gather(table, ids) }"""
SHIFTED = FRESH.replace("<float", "<int64 one = {1}, float").replace(
    "y = Gather(table, ids)", "[planted] moved = Add(ids, one) [look_up] y = Gather(table, moved)"
)


def graph(text: str) -> Graph:
    return Graph(onnx.parser.parse_model(text))


def test_the_node_that_is_strange_is_named():
    named = name_piece(graph(SHIFTED), Culprit("look_up", "Gather", 1.0, value="y"), {"ids", "y"}, graph(FRESH))
    assert (named.node, named.op, named.piece) == ("planted", "Add", ("planted", "look_up"))


def test_without_a_fresh_export_the_piece_is_told():
    named = name_piece(graph(SHIFTED), Culprit("look_up", "Gather", 1.0, value="y"), {"ids", "y"}, None)
    assert (named.node, named.piece) == ("look_up", ("planted", "look_up"))


def test_a_node_among_common_values_stands_alone():
    culprit = Culprit("look_up", "Gather", 1.0, value="y")
    assert name_piece(graph(SHIFTED), culprit, {"ids", "moved", "y"}, graph(FRESH)) == culprit
