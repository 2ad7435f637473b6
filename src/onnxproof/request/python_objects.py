"""The object that `path/file.py:name` or `package.module:name` names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

from onnxproof.errors import TargetError, condense, list_names
from onnxproof.request.specs import parse_target


def load_object(text: str) -> tuple[Any, str]:
    """The object, and the name it has in its file or package."""
    path, attribute = parse_target(text)
    if attribute is None:
        raise TargetError(f"{text} is a file: expected path/file.py:name or package.module:name")
    value: Any = _import_file(Path(path)) if path.endswith(".py") else _import_module(path)
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = [n for n in vars(value) if not n.startswith("_")] if hasattr(value, "__dict__") else []
            raise TargetError(f"{path} has no {part!r}; it has {list_names(sorted(names)[:20])}")
        value = getattr(value, part)
    return value, attribute


def _import_file(path: Path) -> Any:
    name = path.stem if path.stem.isidentifier() else "onnxproof_target"
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that classes of the file can be pickled and found by dataclasses
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        package = find_package(path.resolve()) if isinstance(error, ImportError) else None
        if package is not None:
            return _import_from_package(*package)
        raise TargetError(f"{path} raised while it was imported: {_tell_raised(error, path)}") from error
    return module


def find_package(path: Path) -> tuple[Path, str] | None:
    """Where the package lies that a file belongs to, and the file's name in it; None for a file that stands alone."""
    folders = [path.parent]
    while (folders[-1] / "__init__.py").is_file():
        folders.append(folders[-1].parent)
    inside = path.relative_to(folders[-1]).with_suffix("")
    return (folders[-1], ".".join(inside.parts)) if len(inside.parts) > 1 else None


def _import_from_package(root: Path, name: str) -> Any:
    """A file that imports what lies beside it by the package's name, or by dots."""
    sys.modules.pop(name.rpartition(".")[2], None)  # what was imported of it as a file alone
    sys.path.insert(0, str(root))
    return _import_module(name)


def _import_module(name: str) -> Any:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise TargetError(f"module {name} raised while it was imported: {_tell_raised(error, None)}") from error


def _tell_raised(error: BaseException, path: Path | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if path is not None and Path(f.filename) == path.resolve()] or frames[-1:]
    # A syntax error says its place itself.
    where = (
        f" ({Path(mine[-1].filename).name}:{mine[-1].lineno})" if mine and not isinstance(error, SyntaxError) else ""
    )
    return f"{type(error).__name__}: {condense(error)}{where}"
