"""What the user writes on the command line, as values: `x:4x3:float32`, `ids:0,30521`, `x:0=batch,1=seq`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from onnxproof.errors import TargetError
from onnxproof.request.option import Expected
from onnxproof.request.reading import MOST

# What an input means, which decides what is tried in it.
Role = Literal["float", "image", "additive-mask", "integer", "id", "mask", "length"]
ROLES: tuple[Role, ...] = get_args(Role)
# Rows of the data: all of them, or those that calibrate a lower precision, or those that judge it.
Part = Literal["all", "calibration", "judging"]
# Files of TorchScript, of which a part may be named: `file.jit:encoder`.
SCRIPTS = (".pt", ".pth", ".ts", ".jit", ".torchscript")
# What a number on the command line is in a tensor.
VALUES = {bool: "bool", int: "int64", float: "float32"}


def parse_target(target: str) -> tuple[str, str | None]:
    """A file or package and the name in it (None for a file that is itself the model); a file that is not there is told at once."""
    path, colon, attribute = target.rpartition(":")
    whole = target.endswith((*SCRIPTS, ".pt2", ".onnx"))
    if whole and (not colon or "/" in attribute or "\\" in attribute):
        path, attribute = target, ""
    elif not colon or not path or not attribute:
        raise TargetError(
            f"TARGET {target!r} is not understood: expected path/file.py:name, package.module:name, file.pt2 or file.pt"
        )
    if (not attribute or path.endswith((".py", *SCRIPTS))) and not Path(path).is_file():
        raise TargetError(f"there is no file {path} in {Path.cwd()}: give its path from here")
    return path, attribute or None


@dataclass(frozen=True)
class InputSpec:
    """One example input by shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    value: float | None = None
    """The one value of a scalar, where the user gave it."""


@dataclass(frozen=True)
class Range:
    """The valid values of an input, both ends included."""

    low: float
    high: float


@dataclass(frozen=True)
class ProviderSpec:
    """An execution provider and its options."""

    name: str
    options: tuple[tuple[str, str], ...] = ()


def parse_input(text: str) -> InputSpec:
    """`name:4x3x224x224[:dtype]`, or `name=16000` for a scalar that is always that."""
    if ":" not in text and "=" in text:
        name, _, number = text.partition("=")
        with suppress(ValueError, KeyError):
            value = json.loads(number)
            kind = VALUES[type(value)]
            if -1e308 <= value <= 1e308:
                return InputSpec(name, (), kind, float(value))
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[0]:
        raise Expected("name:4x3x224x224:float32, or name=16000 for a number")
    try:
        shape = tuple(int(size) for size in parts[1].lower().split("x")) if parts[1] not in ("", "scalar") else ()
    except ValueError:
        raise Expected(f"sizes such as 4x3x224x224, got {parts[1]!r}") from None
    if not all(0 <= size <= MOST for size in shape):
        raise Expected(f"sizes of 0 or more, at most {MOST:,}, got {parts[1]!r}")
    return InputSpec(parts[0], shape, parts[2] if len(parts) == 3 else "float32")


def parse_range(text: str) -> tuple[str, Range]:
    """`name:low,high`, both ends included."""
    name, _, ends = text.rpartition(":")
    try:
        low, high = (float(end) for end in ends.split(","))
    except ValueError:
        raise Expected("name:low,high") from None
    if not name:
        raise Expected("name:low,high")
    return name, to_range((low, high))


def to_range(value: Any) -> Range:
    """Two ends, or a range already."""
    if isinstance(value, Range):
        return value
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError, OverflowError):
        raise Expected("two numbers, low and high") from None
    if not -1e308 <= low <= high <= 1e308:
        raise Expected("name:low,high, two finite numbers with low ≤ high")
    return Range(low, high)


def parse_role(text: str) -> tuple[str, Role]:
    """`name:role`."""
    name, _, role = text.rpartition(":")
    if not name or role not in ROLES:
        raise Expected(f"name:role with a role of {', '.join(ROLES)}")
    return name, to_role(role)


def to_role(value: Any) -> Role:
    """One of the roles."""
    if value not in ROLES:
        raise Expected(f"a role of {', '.join(ROLES)}")
    role: Role = value
    return role


def read_dynamic(value: Any) -> dict[str, dict[int, str]]:
    """`name:0=batch,1=seq`, one per input, or a mapping; `none` makes every dimension static."""
    dims: dict[str, dict[int, str]] = {}
    if isinstance(value, Mapping):
        return {str(name): dict(sizes) for name, sizes in value.items()}
    for text in [value] if isinstance(value, str) else value:
        if text == "none":
            continue
        name, _, rest = text.rpartition(":")
        try:
            pairs = [part.split("=") for part in rest.split(",")]
            dims.setdefault(name, {}).update({int(dim): size or f"{name}_{dim}" for dim, size in pairs})
        except ValueError:
            name = ""
        if not name:
            raise Expected("name:0=batch,1=seq", text)
    return dims


def parse_provider(text: str) -> ProviderSpec:
    """`NAME[:key=value,…]`; the `ExecutionProvider` at the end may be left out."""
    name, _, rest = text.partition(":")
    options = tuple((k, v) for k, _, v in (part.partition("=") for part in rest.split(",") if part))
    return ProviderSpec(name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider", options)
