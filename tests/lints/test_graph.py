"""The structure of a file, as far as no session is needed."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnxproof.errors import UserError
from onnxproof.graph.view import Graph
from onnxproof.lints.graph import find_newest, lint_content, lint_graph

ENDS = "(float[N, 4] x) => (float[A, B] y)"


def read(folder: Path, body: str, ends: str = ENDS, opset: int = 20, stored: str = "") -> Graph:
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g {ends} {stored} {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return Graph.read(folder / "m.onnx")


def messages(findings, code: str) -> list[str]:
    return [finding.message for finding in findings if finding.code == code]


@pytest.mark.parametrize(
    ("runtime", "expected"), [("1.15.1", (18, 9)), ("1.20", (21, 10)), ("1.22.0", (22, 10)), ("1.99", (26, 13))]
)
def test_a_release_that_is_not_listed_reads_what_the_one_before_does(runtime, expected):
    assert find_newest(runtime) == (*expected, f"onnxruntime {runtime}")


@pytest.mark.parametrize("runtime", ["latest", "1.3"])
def test_a_release_that_nobody_knows(runtime):
    with pytest.raises(UserError, match="expected"):
        find_newest(runtime)


def test_an_old_runtime_and_fixed_dimensions(tmp_path):
    graph = read(tmp_path, "y = Neg(x)", "(float[2, 4] x) => (float[2, 4] y)")
    told = messages(lint_graph(graph, ["CPUExecutionProvider"], "1.16"), "OX310")
    assert told == ["onnxruntime 1.16 does not read opset 20 (it reads up to 19) or IR version 10 (it reads up to 9)"]
    assert messages(lint_graph(graph, ["CPUExecutionProvider"], "1.20"), "OX312") != []
    open_graph = read(tmp_path, "y = Neg(x)")
    assert {"OX310", "OX312"} & {f.code for f in lint_graph(open_graph, ["CPUExecutionProvider"], "1.20")} == set()


@pytest.mark.parametrize(
    ("body", "stored", "marked"),
    [
        ("y = Reshape(x, to)", "<int64[2] to = {8, 2}>", True),
        ("y = Reshape(x, to)", "<int64[2] to = {0, 2}>", False),
        ("y = Reshape(x, to)", "<int64[2] to = {-1, 2}>", False),
        ("y = Expand(x, to)", "<int64[2] to = {2, 4}>", True),
        ("y = Expand(x, to)", "<int64[2] to = {1, 4}>", False),
        ("to = Concat<axis = 0>(a, b) y = Reshape(x, to)", "<int64[1] a = {8}, int64[1] b = {2}>", True),
        ("n = Shape(x) to = Concat<axis = 0>(n, b) y = Reshape(x, to)", "<int64[1] b = {1}>", False),
    ],
)
def test_a_batch_that_is_written_down(tmp_path, body, stored, marked):
    assert bool(messages(lint_content(read(tmp_path, body, stored=stored)), "OX313")) == marked


def test_what_could_be_left_out(tmp_path):
    body = "a = Identity(x) b = Identity(a) dead = Neg(x) y = Relu(b)"
    (told,) = messages(lint_content(read(tmp_path, body, stored="<float[1] w = {1}>")), "OX317")
    assert "1 stored tensors (w)" in told
    assert "1 nodes (Neg)" in told
    assert "1 Identity chains (b)" in told


def test_random_and_training_nodes(tmp_path):
    stored = "<float r = {0.5}, bool yes = {1}, bool no = {0}>"
    for flag, told in (("yes", ["1 random or training-mode nodes: Dropout"]), ("no", [])):
        assert messages(lint_content(read(tmp_path, f"y = Dropout(x, r, {flag})", stored=stored)), "OX318") == told


def test_local_paths_in_the_metadata(tmp_path):
    graph = read(tmp_path, "y = Neg(x)")
    graph.proto.graph.node[0].doc_string = "made in /home/me/net.py by me"
    (told,) = messages(lint_content(Graph(graph.proto, graph.path)), "OX322")
    assert told.endswith("such as /home/me/net.py")


def test_metadata_that_is_no_text(tmp_path):
    graph = read(tmp_path, "y = Neg(x)")
    graph.proto.graph.node[0].doc_string = "/home/me/??.py"
    broken = graph.proto.SerializeToString().replace(b"??", b"\xff\xfe")
    (told,) = messages(lint_content(Graph(onnx.load_from_string(broken), graph.path)), "OX322")
    assert "/home/me/" in told
