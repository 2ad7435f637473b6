"""The user's source: places where a size or a value becomes a Python number, and preprocessing beside the module."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PREPROCESSING = re.compile(
    r"(^|_)(pre_?process(ing|or)?|transforms?|normali[sz]e|standardi[sz]e|tokeni[sz]e(r)?|featuri[sz]e)(_|$)", re.I
)
RESHAPES = frozenset({"view", "reshape", "unflatten"})


@dataclass(frozen=True)
class Spot:
    """A line of the user's, and what is remarkable about it."""

    file: str
    line: int
    text: str
    what: str


def fixed_spots(function: object, batch: int | None) -> list[Spot]:
    """Lines of a forward that turn a tensor's size or value into a Python number."""
    try:
        lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]  # what has no source raises
        file = inspect.getsourcefile(function) or ""  # type: ignore[arg-type]  # as above
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return []
    found = dict(_calls(tree, batch))
    return [
        Spot(file, first + line - 1, lines[line - 1].strip(), what)
        for line, what in sorted(found.items())
        if line <= len(lines)
    ]


def _calls(tree: ast.AST, batch: int | None) -> Iterator[tuple[int, str]]:
    inputs = _parameters(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            what = _method(node, batch) if isinstance(node.func, ast.Attribute) else _builtin(node, inputs)
            if what:
                yield node.lineno, what


def _parameters(tree: ast.AST) -> set[str]:
    """Names of the forward's inputs."""
    return {
        argument.arg
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for argument in [*function.args.args, *function.args.kwonlyargs]
        if argument.arg != "self"
    }


def _method(call: ast.Call, batch: int | None) -> str | None:
    assert isinstance(call.func, ast.Attribute)  # the caller looked
    name = call.func.attr
    if name in ("item", "tolist") and not call.args:
        return f".{name}() makes a Python number of a tensor's value"
    if name in RESHAPES and batch is not None and batch > 1 and call.args:
        first = (
            call.args[0].elts[0]
            if isinstance(call.args[0], (ast.Tuple, ast.List)) and call.args[0].elts
            else call.args[0]
        )
        if isinstance(first, ast.Constant) and first.value == batch and name != "unflatten":
            return f".{name}({batch}, …) writes the example's batch size into the graph"
    return None


def _builtin(call: ast.Call, inputs: set[str]) -> str | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if len(call.args) != 1:
        return None
    argument = call.args[0]
    if name in ("int", "float", "bool") and _size(argument):
        return f"{name}() makes a Python number of a size"
    if name == "len" and isinstance(argument, ast.Name) and argument.id in inputs:
        return "len() makes a Python number of a size"
    return None


def _size(node: ast.AST) -> bool:
    """Whether an expression contains `.shape[…]` or `.size(…)`."""
    return any(isinstance(part, ast.Attribute) and part.attr in ("shape", "size") for part in ast.walk(node))


def preprocessing_spots(file: Path) -> list[Spot]:
    """Functions and pipelines of a file that prepare inputs outside any module."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
    lines = text.splitlines()
    return [
        Spot(str(file), node.lineno, lines[node.lineno - 1].strip(), what)
        for node in tree.body
        for what in _prepares(node)
    ]


def _prepares(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef) and PREPROCESSING.search(node.name):
        return [f"{node.name}() prepares inputs outside the module"]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        called = node.value.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if name in (
            "Compose",
            "Normalize",
            "StandardScaler",
            "MinMaxScaler",
            "RobustScaler",
            "Pipeline",
            "make_pipeline",
        ):
            return [f"{name} prepares inputs outside the module"]
    return []
