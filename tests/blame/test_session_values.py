"""Errors of inner values, and what they say about nodes."""

from __future__ import annotations

import numpy as np
import onnx

from onnxproof.blame.session_values import (
    Seen,
    find_amplifiers,
    find_departures,
    find_nonfinite,
    split_names,
    trace_way,
)
from onnxproof.graph.view import Graph

TEXT = '<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y) { a = Neg(x) b = Exp(a) y = Sin(b) }'
GRAPH = Graph(onnx.parser.parse_model(TEXT))


def test_chunks_fit_into_the_budget_and_lose_nothing():
    sizes = {f"v{i}": 10 * (i + 1) for i in range(12)}
    groups = list(split_names(sizes, sizes, 100))
    assert [name for group in groups for name in group] == list(sizes)
    assert all(sum(sizes[n] for n in group) <= 100 or len(group) == 1 for group in groups)
    assert len(groups) > 5


def test_a_node_departs_where_its_inputs_do_not():
    seen = Seen({"a": 1e-7, "b": 1e-2, "y": 2e-2}, worst={"b": (1.0, 1.01)})
    (found,) = find_departures(GRAPH, seen)
    assert (found.op, found.value, found.error, found.expected, found.got) == ("Exp", "b", 1e-2, 1.0, 1.01)


def test_the_way_tells_what_is_inherited():
    steps = trace_way(GRAPH, {"b": 1e-2, "y": np.inf}, {"y": "head"})
    assert [(s.op, s.introduced, s.inherited) for s in steps] == [("Exp", 1e-2, 0.0), ("Sin", 1e300, 1e-2)]
    after = trace_way(GRAPH, {"b": np.inf, "y": np.inf}, {})
    assert [(s.introduced, s.inherited) for s in after] == [(1e300, 0.0), (0.0, 1e300)]


def test_an_amplifier_makes_a_small_error_large():
    (step,) = find_amplifiers(GRAPH, Seen({"a": 1e-6, "b": 2e-6, "y": 1e-3}), {}, 6e-8)
    assert step.op == "Sin"
    assert round(step.introduced) == 500


def test_nan_is_born_where_no_input_has_it():
    node = find_nonfinite(GRAPH, {"b", "y"})
    assert node is not None
    assert node.op_type == "Exp"
    assert find_nonfinite(GRAPH, {"x", "a"}) is None
