"""The record of a file."""

from __future__ import annotations

import hashlib
import json

import onnx
import pytest
from onnx import helper

from onnxproof.artifact.file import SIGNATURE, read_artifact
from onnxproof.errors import FindingError

TEXT = (
    '<ir_version: 10, opset_import: ["" : 20], producer_name: "me", producer_version: "2"> '
    "g (float[batch, 4] x, string words) => (float[batch, 4] y) { a = Neg(x) b = Neg(a) y = Relu(b) }"
)


def test_what_is_read(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    artifact = read_artifact(path, "dynamo", strict=True)
    assert (artifact.opset, artifact.ir_version, artifact.producer, artifact.exporter) == (20, 10, "me 2", "dynamo")
    assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert artifact.bytes == path.stat().st_size
    assert (artifact.nodes, artifact.operators) == (3, {"Neg": 2, "Relu": 1})
    assert [(port.name, port.dtype, port.shape) for port in artifact.inputs] == [
        ("x", "float32", ("batch", 4)),
        ("words", "str", ()),
    ]
    assert (artifact.promised_inputs, artifact.bounds, artifact.strict) == (None, {}, True)


def test_what_the_exporter_promised(tmp_path):
    model = onnx.parser.parse_model(TEXT)
    promised = {"inputs": ["x"], "outputs": ["y"], "bounds": {"batch": [2, None]}}
    helper.set_model_props(model, {SIGNATURE: json.dumps(promised)})
    onnx.save(model, tmp_path / "m.onnx")
    artifact = read_artifact(tmp_path / "m.onnx")
    assert (artifact.promised_inputs, artifact.promised_outputs) == (("x",), ("y",))
    assert artifact.bounds == {"batch": (2, None)}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"inputs": 3, "outputs": []}', '{"inputs": [], "outputs": [], "bounds": {"b": []}}']
)
def test_a_promise_that_cannot_be_read_is_a_finding(text, tmp_path):
    model = onnx.parser.parse_model(TEXT)
    helper.set_model_props(model, {SIGNATURE: text})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(FindingError, match=r"onnxproof\.signature are not what onnxproof writes"):
        read_artifact(tmp_path / "m.onnx")
