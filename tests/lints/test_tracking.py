"""Which names hold tensors and sizes."""

from __future__ import annotations

import ast
import textwrap

import pytest

from onnxproof.lints.tracking import Names, hand_over, list_inputs, list_parameters, read_name, track


def function(text: str) -> ast.FunctionDef:
    made = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(made, ast.FunctionDef)
    return made


def kinds(*lines: str) -> dict[str, str]:
    body = "\n    ".join(lines)
    made = function(f"def forward(self, x):\n    {body}")
    return track(made, {"x": "tensor"}).kinds


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("a = x * 2 + 1", "tensor"),
        ("a = -x[0].relu()", "tensor"),
        ("a = torch.cat([x, x]) if x.ndim else torch.relu(x)", "tensor"),
        ("a = x > 0", "tensor"),
        ("a = x.shape", "size"),
        ("a = x.shape[1]", "size"),
        ("a = math.sqrt(x.size(1))", "size"),
        ("a = x.shape[0]", "batch"),
        ("a = int(x.size(0)) * 2", "batch"),
        ("a = x is None", None),
        ("a = not x", None),
        ("a = x.dtype", None),
        ("a = x.item()", None),
        ("a = len(x)", None),
        ("a = 3", None),
    ],
)
def test_an_expression(line, kind):
    assert kinds(line).get("a") == kind


def test_what_is_unpacked_and_what_a_loop_carries():
    assert kinds("b, c = x.shape") == {"x": "tensor", "b": "batch", "c": "size"}
    assert kinds("b, (c, d) = 1, (x, x.size(1))")["d"] == "size"
    assert kinds("for row in x:", "    y = last", "    last = row")["y"] == "tensor"
    assert kinds("if (n := x.shape[0]) > 1:", "    pass")["n"] == "batch"


def test_functions_inside_get_what_they_are_given():
    assert kinds("def f(t): return t", "f(x)")["t"] == "tensor"
    assert kinds("torch.cond(p, lambda t: t, lambda u: u, (x,))")["u"] == "tensor"


def test_parameters_that_may_be_tensors():
    made = function(
        "def forward(self, x, n: int, names: List[str], k=3, mask=None, *, scale: 'Tuple[int]', t: torch.Tensor, flag=True): ..."
    )
    assert [parameter.arg for parameter in list_parameters(made)][:2] == ["x", "n"]
    assert set(list_inputs(made)) == {"x", "mask", "t"}


def test_a_call_hands_over_what_it_is_given():
    wanted = function("def f(a, b: int, c): ...")
    call = ast.parse("f(x, x, c=x.shape[0])").body[0].value
    assert hand_over(call, wanted, Names({"x": "tensor"})) == {"a": "tensor", "c": "batch"}


def test_a_list_that_is_added_to_is_no_tensor():
    made = function("def f(self, xs, x):\n    xs.append(1)\n    xs + [x]\n    return x * 2")
    assert track(made, {}).used == {"x"}


def test_names_of_names():
    assert [read_name(ast.parse(text).body[0].value) for text in ("a", "a.b", "a()")] == ["a", "b", ""]
