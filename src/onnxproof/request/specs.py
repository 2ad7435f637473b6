"""What the user writes on the command line, as values: `x:4x3:float32`, `ids:0,30521`, `x:0=batch,1=seq`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from onnxproof.errors import InputError, TargetError, UserError

Role = Literal["float", "image", "additive-mask", "integer", "id", "mask", "length"]
"""What an input means, which decides what is tried in it."""
ROLES: tuple[Role, ...] = get_args(Role)


def parse_target(target: str) -> tuple[str, str | None]:
    """A file or package and the name in it (None for a file that is itself the model); a file that is not there is told at once."""
    path, colon, attribute = target.rpartition(":")
    whole = target.endswith((".pt2", ".pt", ".pth", ".ts", ".onnx"))
    if whole and (not colon or "/" in attribute or "\\" in attribute):
        path, attribute = target, ""
    elif not colon or not path or not attribute:
        raise TargetError(
            f"TARGET {target!r} is not understood: expected path/file.py:name, package.module:name, file.pt2 or file.pt"
        )
    if (not attribute or path.endswith(".py")) and not Path(path).is_file():
        raise TargetError(f"there is no file {path} in {Path.cwd()}: give its path from here")
    return path, attribute or None


@dataclass(frozen=True)
class InputSpec:
    """One example input by shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str


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
    """`name:4x3x224x224[:dtype]`."""
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[0]:
        raise InputError(f"--input {text!r}: expected name:4x3x224x224:float32")
    try:
        shape = tuple(int(size) for size in parts[1].lower().split("x")) if parts[1] not in ("", "scalar") else ()
    except ValueError:
        raise InputError(f"--input {text!r}: expected sizes such as 4x3x224x224, got {parts[1]!r}") from None
    return InputSpec(parts[0], shape, parts[2] if len(parts) == 3 else "float32")


def parse_range(text: str) -> tuple[str, Range]:
    """`name:low,high`, both ends included."""
    name, _, ends = text.rpartition(":")
    try:
        low, high = (float(end) for end in ends.split(","))
    except ValueError:
        raise InputError(f"--range {text!r}: expected name:low,high") from None
    if not name or not -1e308 <= low <= high <= 1e308:
        raise InputError(f"--range {text!r}: expected name:low,high, two finite numbers with low ≤ high")
    return name, Range(low, high)


def parse_role(text: str) -> tuple[str, Role]:
    """`name:role`."""
    name, _, role = text.rpartition(":")
    for known in ROLES:
        if name and role == known:
            return name, known
    raise InputError(f"--role {text!r}: expected name:role with a role of {', '.join(ROLES)}")


def parse_dynamic(texts: Iterable[str]) -> dict[str, dict[int, str]] | None:
    """`name:0=batch,1=seq`, one per input; `none` makes every dimension static."""
    dims: dict[str, dict[int, str]] = {}
    given = list(texts)
    for text in given:
        if text == "none":
            continue
        name, _, rest = text.rpartition(":")
        try:
            pairs = [part.split("=") for part in rest.split(",")]
            dims.setdefault(name, {}).update({int(dim): size or f"{name}_{dim}" for dim, size in pairs})
        except ValueError:
            raise InputError(f"--dynamic {text!r}: expected name:0=batch,1=seq") from None
        if not name:
            raise InputError(f"--dynamic {text!r}: expected name:0=batch,1=seq")
    return dims if given else None


def parse_sizes(text: str | None) -> tuple[int, ...] | None:
    """`1,2,7,32`."""
    if text is None:
        return None
    try:
        sizes = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UserError(f"--batch-sizes {text!r}: expected numbers such as 1,2,7,32") from None
    if any(size < 0 for size in sizes):
        raise UserError(f"--batch-sizes {text!r}: expected sizes of 0 or more")
    return sizes


def parse_provider(text: str) -> ProviderSpec:
    """`NAME[:key=value,…]`; the `ExecutionProvider` at the end may be left out."""
    name, _, rest = text.partition(":")
    options = tuple((k, v) for k, _, v in (part.partition("=") for part in rest.split(",") if part))
    return ProviderSpec(name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider", options)


def parse_threshold(texts: Iterable[str], flag: str) -> tuple[float | None, dict[str, float]]:
    """`1e-3` for all outputs, `logits=1e-3` for one; repeatable."""
    general: float | None = None
    special: dict[str, float] = {}
    for text in texts:
        output, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise UserError(f"--{flag} {text!r}: expected a number, or output=number") from None
        if not value >= 0:
            raise UserError(f"--{flag} {text!r}: expected a number of 0 or more")
        if equals:
            special[output] = value
        else:
            general = value
    return general, special


def parse_bytes(text: str) -> int:
    """`512MB`, `2GB`, `500000`."""
    units = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "K": 1e3, "M": 1e6, "G": 1e9}
    upper = text.strip().upper()
    unit = next((u for u in units if upper.endswith(u)), "")
    try:
        return int(float(upper[: len(upper) - len(unit)] if unit else upper) * units.get(unit, 1.0))
    except ValueError:
        raise UserError(f"{text!r}: expected a size such as 512MB or 2GB") from None


def parse_seconds(text: str) -> float:
    """`30`, `30s`, `2m`, `500ms`."""
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    unit = next((u for u in ("ms", "s", "m", "h") if text.endswith(u)), "")
    try:
        return float(text[: len(text) - len(unit)] if unit else text) * units.get(unit, 1.0)
    except ValueError:
        raise UserError(f"{text!r}: expected a time such as 30s, 2m or 500ms") from None
