"""Which precision a file has chosen."""

from __future__ import annotations

import pytest

from lowered import lower
from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph

TOLD = {
    "float32": None,
    "int8 dynamic": "int8 dynamic, 3 of 3 MatMuls; weights per channel",
    "int8 static": "int8 static, 3 of 3 Gemms; weights per channel",
    "int8 operators": "int8 static, 3 of 3 Gemms; weights per tensor",
    "float16": "float16, 6 of 6 weights",
    "float16 throughout": "float16, 6 of 6 weights; inputs and outputs in float16",
    "int4 weights": "int4 weights, 3 of 3 MatMuls; weights per channel",
}


@pytest.mark.parametrize("kind", TOLD)
def test_it_is_said_in_a_line(kind):
    precision = recognise_precision(Graph.read(lower(kind)))
    assert (precision and precision.text) == TOLD[kind]
    assert precision is None or not precision.declared


def test_products_that_stay_in_float_are_counted():
    graph = Graph.read(lower("int8 dynamic"))
    precision = recognise_precision(graph)
    assert precision is not None
    assert precision.operators == {"MatMul": (3, 3)}
    assert precision.kind == "int8 dynamic"
