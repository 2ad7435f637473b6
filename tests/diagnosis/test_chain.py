"""An exception and its causes."""

from __future__ import annotations

import pytest
from torch import nn

from onnxproof.diagnosis.chain import (
    blames_dimensions,
    blames_optimiser,
    find_called,
    find_fixed_places,
    find_location,
    follow_links,
    read_chain,
    shorten_chain,
)


class Node:
    target = "prims.prod"
    meta = {  # noqa: RUF012  # as torch.fx has it
        "stack_trace": 'File "/home/me/net.py", line 7, in forward\n    return x.cumprod(0)\n',
        "nn_module_stack": {"a": ("", nn.Module), "b": ("model.fc", nn.Linear)},
        "original_aten": "aten.cumprod.default",
    }


def raised(message: str = "outer", node: object = None) -> Exception:
    try:
        try:
            raise ValueError("inner")
        except ValueError as inner:
            raise RuntimeError(message) from inner
    except RuntimeError as error:
        return error


def test_texts_come_innermost_first():
    error = raised()
    assert [str(link) for link in follow_links(error)] == ["outer", "inner"]
    assert read_chain(error) == "ValueError: inner\nRuntimeError: outer"


def test_the_operator_that_was_translated_is_in_a_frame():
    error = raised("Error when translating node prod", Node())
    where = find_location(error)
    assert (where.module, where.file, where.line) == ("fc", "/home/me/net.py", 7)
    assert find_called(error) == "aten.cumprod"
    assert find_called(raised(node=Node())) is None


def test_the_users_line_comes_from_the_traceback_else():
    where = find_location(raised())
    assert where.file == __file__
    assert where.module is None
    told = find_location(RuntimeError('File "/home/me/other.py", line 3, in forward\n    x.item()'))
    assert (told.file, told.line) == ("/home/me/other.py", 3)


def test_dimensions_that_are_fixed():
    error = raised("Constraints violated! L['leaves'][1].size()[0] and L['leaves'][0].shape[2]")
    assert blames_dimensions(error)
    assert find_fixed_places(error) == {(1, 0), (0, 2)}
    assert not blames_dimensions(raised())


@pytest.mark.parametrize(
    ("message", "told"), [("PassError: x", True), ("in onnxscript/rewriter/a.py", True), ("x", False)]
)
def test_the_optimiser(message, told):
    assert blames_optimiser(raised(message)) == told


def test_the_lines_that_say_something():
    text = "\x1b[91mfirst\x1b[0m\n\n  ⬆\n[torch.onnx] Obtain model graph\nsecond  \n" + "x" * 400
    assert shorten_chain(text) == f"first\nsecond\n{'x' * 300}"
    assert shorten_chain(text, 1) == "first"
