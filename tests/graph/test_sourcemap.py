"""Where a node comes from, and the side file that says so."""

from __future__ import annotations

import pytest

from onnxproof.errors import InputError
from onnxproof.graph.sourcemap import Origin, place_in, place_node, read, read_origin, read_scope, write

TRACE = 'File "/x/torch/nn/modules/module.py", line 1, in _call\n  call()\nFile "/home/me/net.py", line 7, in forward\n    return x * 2\n'
METADATA = {
    "pkg.torch.onnx.stack_trace": TRACE,
    "pkg.torch.onnx.name_scopes": "['', 'model.fc', 'mul']",
    "pkg.torch.onnx.class_hierarchy": "['Net', 'Linear', 'aten.mul']",
    "pkg.torch.onnx.fx_node": "%mul : call_function[target=torch.ops.aten.mul.Tensor](args = (%x, 2))",
}


def test_what_the_exporter_wrote_on_a_node():
    origin = read_origin(METADATA)
    assert (origin.module, origin.cls, origin.op) == ("fc", "Linear", "aten.mul.Tensor")
    assert (origin.file, origin.line, origin.text) == ("/home/me/net.py", 7, "return x * 2")
    for text in ("not a list [", "3", "(" * 5000, "{[]: 1}"):
        assert read_origin({"pkg.torch.onnx.name_scopes": text}) == Origin()


def test_torchscript_keeps_scopes_in_names():
    assert read_scope("/model/fc1/Gemm").module == "fc1"
    assert read_scope("/model/fc1_2/Gemm", ["fc1"]).module == "fc1"
    assert read_scope("/model/fc1_2/Gemm", ["fc1", "fc1_2"]).module == "fc1_2"
    traced = read_scope("Gemm_1", trace="/x/torch/nn/linear.py(3): forward\n/home/me/net.py(9): forward\n")
    assert (traced.module, traced.file, traced.line) == (None, "/home/me/net.py", 9)


def test_there_and_back(tmp_path):
    origins = {"a": Origin(module="fc", file="net.py", line=3), "b": Origin()}
    write(tmp_path / "map.json", origins)
    assert read(tmp_path / "map.json") == origins
    where = place_node("a", str(tmp_path / "map.json"))
    assert (where.node, where.module, where.file, where.line) == ("a", "fc", "net.py", 3)
    assert place_node("a", None).module is None
    assert place_in(origins, "unknown").node == "unknown"
    assert read(tmp_path / "none.json") == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"nodes": 3}', '{"nodes": {"a": {"line": "x"}}}', "[" * 100_000, "\xff"]
)
def test_what_is_no_source_map_is_told(text, tmp_path):
    (tmp_path / "map.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"map.json is not the source map of a model: .*Delete it"):
        read(tmp_path / "map.json")
