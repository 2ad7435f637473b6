"""Decisions written into a graph, and the session that shows how near an input is to them."""

from __future__ import annotations

import numpy as np
import onnx

from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.graph.view import Graph
from onnxproof.request.session import SessionSettings
from onnxproof.search.graph_decisions import Decision, GraphWatcher, find_decisions


def parsed(body: str) -> Graph:
    text = f'<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y) <float low = {{-1}}, double high = {{6}}> {{ {body} }}'
    return Graph(onnx.parser.parse_model(text))


def test_limits_are_read_wherever_they_are_stored():
    found = find_decisions(parsed("a = Identity(low) b = Cast <to = 1>(high) y = Clip(x, a, b)"))
    assert found == [Decision("graph Clip#2.0", "x", -1.0), Decision("graph Clip#2.1", "x", 6.0)]


def test_comparisons_and_poles_of_constants_decide_nothing():
    graph = parsed("c = Constant <value_float = 2.0>() s = Sqrt(c) g = Greater(c, x) y = Div(x, s)")
    assert find_decisions(graph) == [
        Decision("graph Greater#2.0", "x", 2.0),
        Decision("graph Div#3.0", "s", 1e-6, size=True),
    ]


def test_the_session_shows_deciding_values_by_the_names_of_the_case():
    graph = parsed("a = Neg(x) y = Clip(a, low)")
    watcher = GraphWatcher(graph, Onnxruntime(), SessionSettings(), {"x": "given"})
    values = watcher.values({"given": np.float32([1, 3])})
    assert values["a"].tolist() == [-1, -3]
    assert [output.name for output in graph.proto.graph.output] == ["y"]
