"""What crosses the seam to an onnxruntime: every dtype bit for bit, refusals by their text, placement by what it tells."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from candidates.small_models import identity
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.exchange import (
    choose_carrier,
    judge_placement,
    read_dtype,
    read_types,
    refuse_file,
    refuse_input,
)
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.errors import FindingError, Rejected
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec

HERE, THERE = SessionSettings(), SessionSettings(runtime=f"python:{sys.executable}")
OPENVINO = SessionSettings(providers=(ProviderSpec("OpenVINOExecutionProvider"), CPU))
VALUES = {
    TensorProto.FLOAT: np.array([0.0, -0.0, np.nan, np.inf, 1e-40], np.float32),
    TensorProto.DOUBLE: np.array([np.pi, -np.inf], np.float64),
    TensorProto.FLOAT16: np.array([65504, 6e-8], np.float16),
    TensorProto.BFLOAT16: np.array([1.5, np.nan, 3e38], ml_dtypes.bfloat16),
    TensorProto.FLOAT8E4M3FN: np.array([448, -0.5], ml_dtypes.float8_e4m3fn),
    TensorProto.FLOAT8E5M2: np.array([57344, -0.5], ml_dtypes.float8_e5m2),
    TensorProto.INT64: np.array([2**62, -1], np.int64),
    TensorProto.UINT8: np.array([0, 255], np.uint8),
    TensorProto.BOOL: np.array([True, False]),
    TensorProto.STRING: np.array(["a", "", "ü\n"], object),
}
OPSET_19 = (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2)


def model_of(kind: int, shape: list) -> bytes:
    import onnx

    model = onnx.load_from_string(identity(kind, shape))
    if kind in OPSET_19:
        model.opset_import[0].version, model.ir_version = 19, 9
    return model.SerializeToString()


def bits(array: np.ndarray) -> object:
    return array.tolist() if array.dtype == object else array.tobytes()


@pytest.mark.parametrize("settings", [HERE, THERE], ids=["here", "there"])
@pytest.mark.parametrize("kind", list(VALUES), ids=lambda kind: TensorProto.DataType.Name(kind).lower())
def test_values_cross_over_bit_for_bit(kind, settings):
    session = choose_candidate(settings).open(model_of(kind, ["n"]), settings)
    for given in (VALUES[kind], VALUES[kind][:0]):
        answer = session.run({"x": given})["y"]
        assert (answer.dtype, answer.shape) == (given.dtype, given.shape)
        assert bits(answer) == bits(given)


@pytest.mark.parametrize("settings", [HERE, THERE], ids=["here", "there"])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.STRING])
def test_a_single_number_has_no_dimension(kind, settings):
    session = choose_candidate(settings).open(model_of(kind, []), settings)
    given = VALUES[kind][:1].reshape(())
    answer = session.run({"x": given})["y"]
    assert answer.shape == ()
    assert bits(answer) == bits(given)


def test_dtypes_by_onnxruntimes_names():
    assert read_dtype("tensor(float)") == np.float32
    assert read_dtype("tensor(bfloat16)") == ml_dtypes.bfloat16
    assert choose_carrier("tensor(bfloat16)") == np.uint16
    assert read_dtype("seq(map(int64,tensor(float)))") is None
    assert choose_carrier("tensor(int8)") == np.int8


def test_a_lack_of_memory_is_told_from_a_refusal():
    assert isinstance(refuse_input("Failed to allocate memory for requested buffer of size 9"), MemoryError)
    assert isinstance(refuse_input("std::bad_alloc"), MemoryError)
    assert isinstance(refuse_input("", memory=True), MemoryError)
    assert isinstance(refuse_input("Got invalid dimensions"), Rejected)


def test_a_file_that_is_refused_without_a_reason_is_still_a_finding():
    assert "it does not say why" in refuse_file("").message
    known = refuse_file(
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Relu(14) node with name 'a'"
    )
    assert known.code == "OX308"


@pytest.mark.parametrize(
    ("settings", "used", "assigned", "code"),
    [
        (HERE, [CPU.name], {CPU.name: ["Add"]}, None),
        (OPENVINO, [CPU.name], {}, "OX304"),
        (OPENVINO, ["OpenVINOExecutionProvider", CPU.name], {}, None),
        (OPENVINO, ["OpenVINOExecutionProvider", CPU.name], {"OpenVINOExecutionProvider": ["Add"]}, None),
        (OPENVINO, ["OpenVINOExecutionProvider", CPU.name], {CPU.name: ["Add"]}, "OX304"),
        (
            OPENVINO,
            ["OpenVINOExecutionProvider", CPU.name],
            {"OpenVINOExecutionProvider": ["Add"], CPU.name: ["Det"]},
            "OX305",
        ),
    ],
)
def test_placement(settings, used, assigned, code):
    finding = judge_placement(settings, used, assigned)
    assert (finding.code if finding else None) == code


@pytest.mark.parametrize("kind", VALUES)
def test_the_types_of_a_file_are_called_as_onnxruntime_calls_them(kind):
    told = choose_candidate(THERE).open(model_of(kind, ["n"]), THERE)._facts
    assert read_types(model_of(kind, ["n"])) == {side: told[side] for side in ("inputs", "outputs")}


def test_a_valid_file_that_a_rewrite_spoils_is_the_runtimes_fault(tmp_path):
    """MatMulScaleFusion takes away a scaling that another product needs: "Invalid model. Node input …"."""
    nodes = [
        helper.make_node("Div", ["x", "a"], ["d"]),
        helper.make_node("Mul", ["d", "b"], ["q"]),
        helper.make_node("MatMul", ["q", "x"], ["s"]),
        helper.make_node("MatMul", ["s", "d"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy"]
    numbers = [helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in (("a", 8.0), ("b", 0.5))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], numbers)
    file = tmp_path / "shared.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), file)
    with pytest.raises(FindingError) as raised:
        Onnxruntime().open(file, SessionSettings(), {})
    assert raised.value.finding.code == "OX325"
    assert "without its rewrites" in raised.value.finding.message
    Onnxruntime().open(file, SessionSettings(optimization="disable"), {})
