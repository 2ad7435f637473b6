"""A counterexample as a script of its own: it needs torch, onnxruntime and numpy, and shows both answers.

Names, paths and texts get into it as literals only: a model's names must not become code.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import torch

from onnxproof.candidates.serve import LEVELS
from onnxproof.files import write_file
from onnxproof.request.python_objects import find_package
from onnxproof.request.session import SessionSettings
from onnxproof.subject.subject import Subject

# Types whose `repr` is code that makes the value again; of a subclass it need not be.
LITERAL = (type(None), bool, int, float, complex, str, bytes, torch.dtype)
# How a module is loaded from such a file.
LOADERS = {".onnx": "load_graph", ".pt2": "load_program", **dict.fromkeys((".pt", ".pth", ".ts"), "load_script")}


@dataclass(frozen=True)
class Sides:
    """What the script has to load, and how names pair up."""

    target: str | None
    """TARGET, or None where the module is in a file beside the script."""
    onnx: Path
    session: SessionSettings
    inputs: Mapping[str, str]
    """Module's input → graph's input."""
    outputs: Mapping[str, str]
    """Module's output → graph's output, in the module's order."""


class NoScript(Exception):
    """The call cannot be written down as code."""


def write_script(file: Path, title: str, subject: Subject, sides: Sides, module_file: str | None) -> None:
    """Write the script beside its npz; raises `NoScript` where the module's inputs are of a type that code cannot build."""
    text = _load_text("counterexample").substitute(
        title=repr(title),
        npz=repr(f"{file.stem}.npz"),
        outputs=repr(list(sides.outputs.items())),
        loading=_write_loading(sides.target, file.parent, module_file),
        call=_write_call(subject),
        level=LEVELS[sides.session.optimization],
        onnx=repr(_make_relative(sides.onnx, file.parent)),
        providers=repr([(p.name, dict(p.options)) for p in sides.session.providers]),
        disabled=repr(list(sides.session.disabled_optimizers) or None),
        feeds=repr(dict(sides.inputs)),
    )
    write_file(file, text)


def _load_text(name: str) -> Template:
    return Template(files("onnxproof.search").joinpath(f"templates/{name}.py.txt").read_text(encoding="utf-8"))


def _make_relative(path: str | Path, folder: Path) -> str:
    return os.path.relpath(Path(path).resolve(), folder.resolve())


def _write_loading(target: str | None, folder: Path, module_file: str | None) -> str:
    if target is None:
        return _load_text("load_pickled").substitute(path=repr(module_file))
    loader = LOADERS.get(Path(target).suffix)
    if loader is not None:
        return _load_text(loader).substitute(path=repr(_make_relative(target, folder)))
    path, _, name = target.rpartition(":")
    return _write_opening(path, folder) + _load_text("load_named").substitute(name=repr(name))


def _write_opening(path: str, folder: Path) -> str:
    if not path.endswith(".py"):
        return _load_text("open_import").substitute(root=repr(""), path=repr(path))
    package = find_package(Path(path).resolve())
    # A file was imported as a part of its package only where it could not be imported alone.
    if package is None or package[1] not in sys.modules:
        return _load_text("open_file").substitute(path=repr(_make_relative(path, folder)))
    root = f"str(HERE / {_make_relative(package[0], folder)!r})"
    return _load_text("open_import").substitute(root=root, path=repr(package[1]))


def _write_call(subject: Subject) -> str:
    names = iter(subject.inputs.tensors)
    parts = [_spell(value, names) for value in subject.args]
    named = [f"**{_spell(dict(subject.kwargs), names)}"] if subject.kwargs else []
    return f"module({', '.join([*parts, *named])})"


def _spell(value: Any, names: Iterator[str]) -> str:
    """The value as code, with `inputs[…]` for its tensors; they come in the order in which inputs are flattened."""
    if hasattr(value, "__array__"):  # tensors and arrays
        return f"inputs[{next(names)!r}]"
    kind = type(value)
    if kind in LITERAL:
        return repr(value)
    if kind is dict:
        return "{" + ", ".join(f"{_spell(k, iter(()))}: {_spell(v, names)}" for k, v in value.items()) + "}"
    if kind in (list, tuple):
        inner = "".join(f"{_spell(item, names)}, " for item in value)
        return f"[{inner}]" if kind is list else f"({inner})"
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else value._fields
        named = _spell({name: getattr(value, name) for name in fields}, names)
        return f"getattr(__import__({kind.__module__!r}, fromlist=['_']), {kind.__qualname__!r})(**{named})"
    raise NoScript(f"an input is a {kind.__module__}.{kind.__qualname__}")
