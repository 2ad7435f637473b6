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
    plain = inspect.unwrap(function) if callable(function) else function
    plain = getattr(plain, "__func__", plain)
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


def own(source: Source) -> bool:
    """Whether a function is the user's: neither of the standard library nor of an installed package."""
    file = str(Path(source.file).resolve())
    installed = "site-packages" in file or "dist-packages" in file or file.startswith((*FOREIGN, PACKAGE))
    return not installed and not file.startswith("<")


def called(call: ast.Call, source: Source, owner: object) -> object:
    """What a call calls, looked up as Python would, without running anything; None where that is not clear."""
    target = call.func
    if isinstance(target, ast.Name):
        return _named(source.function, target.id)
    if not isinstance(target, ast.Attribute):
        return None
    if isinstance(target.value, ast.Name):
        if target.value.id == "self":
            return _member(owner, target.attr)
        holder = _named(source.function, target.value.id)
        return inspect.getattr_static(holder, target.attr, None) if isinstance(holder, ModuleType) else None
    if isinstance(target.value, ast.Call) and isinstance(target.value.func, ast.Name):
        return _above(source.function, owner, target.attr) if target.value.func.id == "super" else None
    return None


def _named(function: FunctionType, name: str) -> Any:
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in closed:
        try:
            return closed[name].cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)


def _member(owner: object, name: str) -> Any:
    found = inspect.getattr_static(owner, name, None)
    return getattr(found, "__func__", found)


def _above(function: FunctionType, owner: object, name: str) -> Any:
    """The attribute that `super()` finds from the class in which the function is defined."""
    line = type(owner).__mro__
    home = next((place for place, one in enumerate(line) if function in map(_plain, vars(one).values())), None)
    if home is None:
        return None
    return next((_plain(vars(one)[name]) for one in line[home + 1 :] if name in vars(one)), None)


def _plain(member: object) -> object:
    return getattr(member, "__func__", member)
