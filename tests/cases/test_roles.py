"""What the graph says about its inputs."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from onnxproof.cases.roles import find_constants, find_uses
from onnxproof.graph.view import Graph


def parsed(body: str, ends: str, **stored: np.ndarray) -> Graph:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in stored.items())
    return Graph(model)


TABLE = np.zeros((30, 4), np.float32)


def test_ids_of_a_stored_table_are_known_also_through_casts_and_inside_branches():
    ends = "(int32[N] ids) => (float[N, 4] y)"
    assert find_uses(parsed("i = Cast <to = 7>(ids) y = Gather(t, i)", ends, t=TABLE))["ids"].table == 30
    branch = (
        "y = If(yes) <then_branch = a () => (float[N, 4] a) { a = Gather(t, ids) }, "
        "else_branch = b () => (float[N, 4] b) { b = Gather(t, ids) }>"
    )
    assert find_uses(parsed(branch, "(int64[N] ids, bool yes) => (float[N, 4] y)", t=TABLE))["ids"].table == 30


def test_a_table_that_is_an_input_has_no_size():
    ends = "(float[30, 4] t, int64[N] ids) => (float[N, 4] y)"
    assert find_uses(parsed("y = Gather(t, ids)", ends))["ids"].table is None


def test_masks_lengths_images_and_sizes():
    graph = parsed(
        "c = Conv(image, w) w1 = Where(mask, x, x) l = Less(length, length) a = Add(x, bias) s = Softmax(a) r = Expand(x, size)",
        "(float[N, 3, 8, 8] image, bool[2] mask, float[2] x, int64 length, float[2] bias, int64[1] size) => (float[2] s)",
        w=np.zeros((1, 3, 3, 3), np.float32),
    )
    found = find_uses(graph)
    assert found["image"].convolved
    assert found["mask"].selects
    assert found["length"].compared
    assert found["bias"].added_before_softmax
    assert found["size"].sizes
    assert not found["mask"].sizes


def test_a_mask_may_be_added_before_another_one():
    graph = parsed(
        "a = Add(x, mask) b = Add(a, causal) y = Softmax(b)",
        "(float[2] x, float[2] mask) => (float[2] y)",
        causal=np.zeros(2, np.float32),
    )
    assert find_uses(graph)["mask"].added_before_softmax


def test_numbers_written_into_the_graph_are_hints():
    graph = parsed(
        "c = Constant <value_float = 6.0>() d = LeakyRelu <alpha = 0.25>(x) e = Clip(d, low, c) y = Add(e, far)",
        "(float[2] x) => (float[2] y)",
        low=np.float32(-3),
        far=np.float32(1e30),
        borders=np.array([10.0, 250.0, 4000.0], np.float32),
        places=np.arange(3),
        many=np.ones(2, np.float32),
        flag=np.array(True),
    )
    assert find_constants(graph) == (0.25, -3.0, 6.0, 10.0, 250.0, 4000.0)


def test_the_size_of_what_is_computed_from_an_input_says_nothing_of_its_numbers():
    body = "s = Shape(x) f = Cast <to = 1>(x) y = Expand(f, s)"
    assert not find_uses(parsed(body, "(int64[n] x) => (float[n] y)"))["x"].sizes
    assert find_uses(parsed("y = ConstantOfShape(x)", "(int64[1] x) => (float[n] y)"))["x"].sizes
