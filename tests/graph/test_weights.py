"""Large weights are read when a node asks, and mean the same as if they were all there."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from onnxproof.graph import weights as module
from onnxproof.graph.evaluator import Evaluator, widen_weights
from onnxproof.graph.view import Graph
from onnxproof.graph.widening import digest_weight, digest_weights

X = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}
WIDE = {name: array.astype(np.float64) for name, array in X.items()}


@pytest.fixture
def small_limits(monkeypatch):
    """Tensors from 32 bytes on are large."""
    monkeypatch.setattr(module, "LARGE", 32)
    monkeypatch.setattr(module, "HEAVY", 0)


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 3] y)'
        "{ m = MatMul(x, w) a = Add(m, b) y = Tanh(a) }"
    )
    rng = np.random.default_rng(0)
    for name, shape in (("w", (4, 3)), ("b", (3,))):
        made.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype("f4"), name))
    return made


def test_the_separated_model_answers_the_same(small_limits):
    together = Evaluator.exact(model(), keep_lossy_casts=True).run(WIDE)["y"]
    light, large = Graph(model()).separated
    assert [tensor.name for tensor in light.graph.initializer] == ["b"]
    assert list(large) == ["w"]
    assert large["w"].dtype == np.float32
    assert large.widened()["w"].dtype == np.float64
    apart = Evaluator.exact(light, large, keep_lossy_casts=True).run(WIDE)["y"]
    np.testing.assert_array_equal(apart, together)


def test_weights_in_another_file_are_read_from_there(small_limits, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    graph = Graph.read(path)
    assert all(tensor.external_data for tensor in graph.proto.graph.initializer)
    light, large = graph.separated
    assert not any(tensor.external_data for tensor in light.graph.initializer)
    assert list(large) == ["w"]
    np.testing.assert_array_equal(Evaluator(light, weights=large).run(X)["y"], Evaluator(model()).run(X)["y"])
    assert graph.folder == str(tmp_path)


def test_a_model_in_memory_shares_its_weights(small_limits):
    graph = Graph.of(ir.from_proto(model()))
    stub = next(tensor for tensor in graph.proto.graph.initializer if tensor.name == "w")
    assert stub.external_data
    assert not stub.raw_data
    assert graph.main.initializers["w"].const_value.numpy().shape == (4, 3)
    light, large = graph.separated
    np.testing.assert_array_equal(Evaluator(light, weights=large).run(X)["y"], Evaluator(model()).run(X)["y"])


def test_only_derived_weights_are_nudged(small_limits):
    large = Graph(model()).separated[1].widened()
    assert not large.list_derived(digest_weights([large["w"].astype("f4")]))
    derived = large.list_derived(set())
    assert derived == {"w"}
    moved = large.nudged(derived, 1)
    again = large.nudged(derived, 1)
    assert 0 < np.abs(moved["w"] / large["w"] - 1).max() < 1e-6
    np.testing.assert_array_equal(moved["w"], again["w"])


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_only_multiplied_by_stays_narrow_and_means_the_same(small_limits, turned):
    """The weights of products are widened inside of them; one that is also added or put out is widened before."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 3] y, float[4, 3] v)'
        "{ g = Gemm<alpha = 0.5, beta = 2.0, transB = TURNED>(x, u, b) s = Add(x, x) m = MatMul(s, w) y = Add(g, m)"
        " p = Gather<axis = 1>(t, i) v = Add(o, p) q = MatMul(x, o) }".replace("TURNED", str(int(turned)))
    )
    rng = np.random.default_rng(0)
    for name, shape in (("u", (3, 4) if turned else (4, 3)), ("w", (4, 3)), ("o", (4, 3)), ("t", (4, 5)), ("b", (3,))):
        made.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype("f4"), name))
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([4, -5, 1]), "i"))
    together = Evaluator.exact(made, keep_lossy_casts=True).run(WIDE)
    light, large = Graph(made).separated
    wide = widen_weights(light, large)
    assert {name for name in wide if wide[name].dtype == np.float32} == {*"uwt"}
    assert wide["o"].dtype == np.float64
    assert wide.nudged(frozenset("w"), 1)["w"].dtype == np.float64
    evaluator = Evaluator.exact(light, large, keep_lossy_casts=True)
    # Whoever asks for a weight gets it whole.
    assert {evaluator.stored[name].dtype.name for name in "uwto"} == {"float64"}
    apart = evaluator.run(WIDE)
    for name, array in together.items():
        assert type(apart[name]) is np.ndarray
        assert apart[name].dtype == np.float64
        np.testing.assert_allclose(apart[name], array, rtol=1e-15, atol=1e-16)


def test_a_large_weight_is_known_by_its_numbers_and_their_order():
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((100, 90)).astype("f4")
    known = digest_weights([weight])
    assert digest_weight(weight.T.copy()) in known
    assert digest_weight(weight.reshape(30, 300)) in known
    assert digest_weight(weight[::-1]) not in known
    assert digest_weight(weight[:, :-1]) not in known
    changed = weight.copy()
    changed[17, 3] = np.nextafter(changed[17, 3], 9)
    assert digest_weight(changed) not in known


def test_a_heavy_model_is_written_as_onnx_writes_it(tmp_path, small_limits):
    """Weight after weight: the same model, valid, and with the same answers."""
    written = tmp_path / "plain.onnx"
    onnx.save(model(), written)
    module.write_model(ir.load(written), tmp_path / "joined.onnx")
    joined = onnx.load(tmp_path / "joined.onnx")
    onnx.checker.check_model(joined, full_check=True)
    own = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(written).graph.initializer}
    got = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in joined.graph.initializer}
    assert own.keys() == got.keys()
    assert all(np.array_equal(own[name], got[name]) for name in own)
    assert [node.op_type for node in joined.graph.node] == [node.op_type for node in model().graph.node]
    np.testing.assert_array_equal(Evaluator(joined).run(X)["y"], Evaluator(model()).run(X)["y"])
