"""A heavy file is read without its weights, and everything still finds them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.errors import FindingError
from onnxproof.graph import lightening
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.file import list_external_files, load_model
from onnxproof.graph.lightening import parse
from onnxproof.graph.view import Graph
from onnxproof.request.session import SessionSettings

X = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


@pytest.fixture
def heavy(monkeypatch, tmp_path):
    """A file whose matrix is large and whose bias is not, as they are taken here."""
    monkeypatch.setattr(lightening, "LARGE", 64)
    monkeypatch.setattr(lightening, "HEAVY", 0)
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 5] y)'
        "{ m = MatMul(x, w) a = Add(m, b) y = Tanh(a) }"
    )
    rng = np.random.default_rng(0)
    for name, shape in (("w", (4, 5)), ("b", (5,))):
        made.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype("f4"), name))
    onnx.save(made, tmp_path / "heavy.onnx")
    return tmp_path / "heavy.onnx"


def test_only_large_values_stay_behind(heavy):
    whole, light = onnx.load(heavy), parse(heavy)
    w, b = light.graph.initializer
    assert (w.name, list(w.dims), w.data_type) == ("w", [4, 5], onnx.TensorProto.FLOAT)
    assert not w.raw_data
    assert b == whole.graph.initializer[1]
    assert light.graph.node == whole.graph.node
    assert light.opset_import == whole.opset_import


def test_the_weights_are_where_the_model_says(heavy):
    graph = Graph.read(heavy)
    stored = onnx.numpy_helper.to_array(onnx.load(heavy).graph.initializer[0])
    np.testing.assert_array_equal(graph.array(graph.main.initializers["w"].const_value), stored)
    assert list_external_files(heavy, graph.proto) == []


def test_evaluator_and_session_find_them(heavy):
    expected = onnxruntime.InferenceSession(heavy).run(None, X)[0]
    graph = Graph.read(heavy)
    model, weights = graph.separated
    np.testing.assert_allclose(Evaluator(model, weights=weights).run(X)["y"], expected, rtol=1e-5)
    session = Onnxruntime().open(graph.showing(["a", "y"]), SessionSettings(weights=graph.folder))
    np.testing.assert_allclose(session.run(X)["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("length", [3, 40, -20])
def test_a_file_that_is_cut_off_is_told(heavy, length):
    heavy.write_bytes(heavy.read_bytes()[:length])
    with pytest.raises(FindingError, match="cut off"):
        load_model(heavy)
