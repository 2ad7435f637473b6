"""From a call in the user's source to the function that it calls, where that is the user's own."""

from __future__ import annotations

import ast
import inspect
import sysconfig
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from onnxproof.lints.tracking import Function

FOREIGN = tuple(
    str(Path(sysconfig.get_path(kind)).resolve()) for kind in ("stdlib", "platstdlib", "purelib", "platlib")
)
PACKAGE = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Source:
    """A function with its source."""

    function: FunctionType
    file: str
    first: int
    lines: tuple[str, ...]
    tree: Function


def read(function: object) -> Source | None:
    """The source of a function; None where it has none, or is a lambda that cannot be told from another."""
    plain = _unbind(inspect.unwrap(function) if callable(function) else function)
    if not isinstance(plain, FunctionType):
        return None
    try:
        lines, first = inspect.getsourcelines(plain)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    wanted = ast.Lambda if plain.__name__ == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, wanted)]
    if not found or (wanted is ast.Lambda and len(found) > 1):
        return None
    return Source(plain, inspect.getsourcefile(plain) or "", max(first, 1), tuple(lines), found[0])


def is_own(source: Source) -> bool:
    """Whether a function is the user's: neither of the standard library nor of an installed package."""
    file = str(Path(source.file).resolve())
    installed = "site-packages" in file or "dist-packages" in file or file.startswith((*FOREIGN, PACKAGE))
    return not installed and not file.startswith("<")


def find_called(call: ast.Call, source: Source, owner: object) -> object:
    """What a call calls, looked up as Python would, without running anything; None where that is not clear."""
    match call.func:
        case ast.Name(id=name):
            return _look_up(source.function, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _unbind(inspect.getattr_static(owner, name, None))
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            holder = _look_up(source.function, module)
            return inspect.getattr_static(holder, name, None) if isinstance(holder, ModuleType) else None
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
            return _look_above(source.function, owner, name)
    return None


def _look_up(function: FunctionType, name: str) -> Any:
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in closed:
        try:
            return closed[name].cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)


def _look_above(function: FunctionType, owner: object, name: str) -> Any:
    """The attribute that `super()` finds from the class in which the function is defined."""
    line = type(owner).__mro__
    home = next((place for place, one in enumerate(line) if function in map(_unbind, vars(one).values())), None)
    if home is None:
        return None
    return next((_unbind(vars(one)[name]) for one in line[home + 1 :] if name in vars(one)), None)


def _unbind(member: object) -> object:
    return getattr(member, "__func__", member)
