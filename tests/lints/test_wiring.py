"""What nodes read: names that nothing writes, and circles."""

from __future__ import annotations

import onnx
import pytest

from onnxproof.graph.view import Graph
from onnxproof.lints.wiring import lint_wiring

BRANCH = "If(yes) <then_branch = t () => (float[2] t) {{ t = Add(x, {read}) }}, else_branch = e () => (float[2] e) {{ e = Neg(x) }}>"


def linted(body: str) -> list[str]:
    ends = "(float[2] x, bool yes) => (float[2] y)"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {ends} {{ {body} }}')
    findings = lint_wiring(Graph(model))
    assert all((finding.code, finding.severity) == ("OX306", "block") for finding in findings)
    return [finding.message for finding in findings]


@pytest.mark.parametrize(
    "body",
    [
        "a = Neg(x) y = Relu(a)",
        "y = Relu(a) a = Neg(x)",
        f"y = {BRANCH.format(read='a')} a = Neg(x)",
        "a, = Relu(x) y = Clip(a, , a)",
    ],
)
def test_what_can_be_sorted_is_fine(body):
    assert linted(body) == []


def test_a_circle_names_its_nodes_and_not_those_that_wait_for_it():
    (message,) = linted("a = Add(x, c) b = Neg(a) c = Abs(b) y = Relu(c)")
    told = message.removeprefix("nodes wait for each other in a circle: ").split(", ")
    assert sorted(told) == ["Abs", "Add", "Neg"]


def test_a_circle_through_a_branch():
    (message,) = linted(f"a = {BRANCH.format(read='b')} b = Neg(a) y = Relu(a)")
    assert sorted(message.removeprefix("nodes wait for each other in a circle: ").split(", ")) == ["If", "Neg"]


def test_a_node_that_waits_for_itself():
    assert linted("a = Neg(a) y = Relu(x)") == ["nodes wait for each other in a circle: Neg"]


@pytest.mark.parametrize("body", ["y = Add(x, ghost)", f"y = {BRANCH.format(read='ghost')}"])
def test_a_name_that_nothing_writes_is_told_once(body):
    assert linted(body) == ["nothing writes 'ghost', which Add reads (node ?)"]
