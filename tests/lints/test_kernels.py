"""Kernels by version and types."""

from __future__ import annotations

import onnx
import pytest

from onnxproof.findings import CATALOGUE
from onnxproof.graph.view import Graph
from onnxproof.lints import kernels
from onnxproof.lints.kernels import CPU, OPEN, Kernel, find_ill_typed, find_missing_kernels, find_unknown_operators

FLOATS = {"T": frozenset({"tensor(float)"})}


def graph(body: str, kind: str = "float", opset: int = 20) -> Graph:
    imports = f'"" : {opset}, "own" : 1, "ai.onnx.contrib" : 1'
    return Graph(
        onnx.parser.parse_model(
            f"<ir_version: 10, opset_import: [{imports}]> g ({kind}[2] x) => ({kind}[2] y) {{ {body} }}"
        )
    )


@pytest.mark.parametrize(
    ("kernel", "version", "bound", "fits"),
    [
        (Kernel(7, 12, FLOATS), 9, {"T": "tensor(float)"}, True),
        (Kernel(7, 12, FLOATS), 13, {"T": "tensor(float)"}, False),
        (Kernel(7, 12, FLOATS), 9, {"T": "tensor(double)"}, False),
        (Kernel(7, 12, FLOATS), 9, {}, True),
        (Kernel(13, OPEN, FLOATS), 13, {"T": "tensor(float)"}, True),
        (Kernel(13, OPEN, FLOATS), 14, {"T": "tensor(float)"}, False),
    ],
)
def test_a_kernel_fits(kernel, version, bound, fits):
    assert kernel.fits(version, bound) == fits


def test_an_operator_without_a_kernel_for_its_type():
    (finding,) = find_missing_kernels(graph("y = Erf(x)", "double"), [CPU])
    assert (finding.code, finding.evidence) == ("OX308", {"nodes": {"Erf with double": [""]}})
    assert list(find_missing_kernels(graph("y = Erf(x)"), [CPU])) == []
    assert list(find_missing_kernels(graph("y = Erf(x)", "float16"), [CPU])) == []


def test_a_provider_that_compiles_subgraphs_cannot_be_asked():
    assert list(find_missing_kernels(graph("y = Erf(x)", "double"), ["NoSuchExecutionProvider"])) == []


@pytest.mark.parametrize(
    ("body", "opset", "told"),
    [
        ("y = NoSuchOperator(x)", 20, "NoSuchOperator"),
        ("y = own.F(x)", 20, "own:F"),
        ("y = Gelu(x)", 19, "Gelu in opset 19 (it is there from 20 on)"),
        ("y = Relu <depth = 1> (x)", 20, "Relu with the attribute 'depth'"),
    ],
)
def test_what_onnxruntime_does_not_know(body, opset, told):
    (finding,) = find_unknown_operators(graph(body, opset=opset))
    assert (finding.code, finding.message) == ("OX311", f"onnxruntime does not know {told}")
    assert list(find_unknown_operators(graph("y = Relu(x)"))) == []


def test_operators_of_extensions_are_known_where_they_are_installed(monkeypatch):
    tokenizer = graph("y = ai.onnx.contrib.BertTokenizer(x)")
    for there, count in ((True, 0), (False, 1)):
        monkeypatch.setattr(kernels, "find_spec", lambda name, there=there: there)
        assert len(list(find_unknown_operators(tokenizer))) == count
    assert "`pip install onnxruntime-extensions`" in CATALOGUE["OX311"].fix


def test_a_type_that_the_standard_does_not_allow():
    (finding,) = find_ill_typed(graph("y = Not(x)"))
    assert "Not does not take tensor(float) as X" in finding.message
    assert find_ill_typed(graph("y = Not(x)", "bool")) == []
