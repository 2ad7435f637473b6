"""What to write instead of operators that the exporters do not translate, and of lines that come out wrong: `forms.toml`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from onnxproof.findings import look_up

# What the name of a node has more than its operator's: `%amax_1`.
NODE = re.compile(r"^%|(?<=[a-z])_\d+$")
WEIGHT = "; where the matrix is a weight, compute it in `__init__` and keep it by `register_buffer`"


def suggest_form(operator: str) -> str | None:
    """What to write instead of an operator (`aten.median.dim`, `prims.prod`, `aten::median`); an overload's form comes before its operator's."""
    parts = NODE.sub("", operator).replace("::", ".").split(".")
    names = (".".join(parts[1:]), parts[1] if len(parts) > 1 else parts[0])
    return next((load_forms()[name] for name in names if name in load_forms()), None)


def suggest_line(line: str, code: str) -> str | None:
    """What to write instead of a line that is exported wrongly, where the finding is of a kind that the advice is for."""
    differs = look_up(code).differs
    fitting = (
        str(advice["instead"])
        for advice in _read_toml()["line"]
        if re.search(advice["says"], line) and advice.get("differs", differs) == differs
    )
    return next(fitting, None)


@cache
def load_forms() -> dict[str, str]:
    """What to write instead, by the operator's name."""
    data = _read_toml()
    known: dict[str, str] = data["forms"] | {name: _phrase(**function) for name, function in data["rewrites"].items()}
    return known | {name: known[other] for name, other in data["same"].items()}


def _phrase(call: str, limits: str = "", weight: bool = False, also: str = "") -> str:
    limits = f" {limits}" if limits else ""
    written = f"`onnxproof.rewrites.{call}`, which is written in operators that export{limits} (import it or copy it)"
    return written + WEIGHT * weight + (f"; {also}" if also else "")


@cache
def _read_toml() -> dict[str, Any]:
    data: dict[str, Any] = msgspec.toml.decode((files(__package__) / "forms.toml").read_bytes())
    return data
