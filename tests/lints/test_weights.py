"""What is remarkable about stored tensors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxproof.graph.view import Graph
from onnxproof.lints.weights import lint_weights

GENERATOR = np.random.default_rng(0)


def linted(kind: str = "float", **stored):
    text = f'<ir_version: 10, opset_import: ["" : 20]> g ({kind}[2] x) => ({kind}[2] y) {{ y = Neg(x) }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in stored.items())
    return {finding.code: finding for finding in lint_weights(Graph(model))}


def weight(*shape: int):
    return GENERATOR.normal(size=shape).astype(np.float32)


def test_doubles_are_equal_in_every_bit():
    first, other = weight(64, 64), weight(64, 64)
    nearly = first.copy()
    nearly[-1, -1] += 1
    assert linted(a=first, b=nearly, c=other) == {}
    finding = linted(a=first, b=nearly, c=first.copy())["OX314"]
    assert finding.evidence["tensors"] == ["c = a"]
    assert finding.message.startswith("0.0 MB")


def test_giants():
    assert set(linted(a=np.tile(weight(1, 700), (700, 1)))) == {"OX315"}
    assert linted(a=weight(700, 700)) == {}


def test_doubles_beside_float_inputs():
    assert set(linted(a=np.array([0.5, 1.5]))) == {"OX316"}
    assert linted("double", a=np.array([0.5, 1.5])) == {}


def test_integers_beyond_32_bits():
    assert set(linted(a=np.array([2**40]))) == {"OX319"}
    assert linted(a=np.array([2**31 - 1, -(2**31), 2**63 - 1])) == {}


@pytest.mark.parametrize(
    ("values", "told"), [([1, np.nan], "nan"), ([1, 2, np.inf], "infinite"), ([0, -np.inf, 0], None), ([np.nan], None)]
)
def test_no_numbers_among_the_weights(values, told):
    found = linted(a=np.array(values, np.float32))
    assert (found["OX320"].evidence["values"] if found else None) == told


def test_many_denormal_numbers():
    tiny = weight(2000)
    tiny[:19] = 1e-40
    assert linted(a=tiny) == {}
    tiny[:40] = 1e-40
    finding = linted(a=tiny)["OX320"]
    assert (finding.evidence["values"], finding.severity) == ("denormal", "note")
