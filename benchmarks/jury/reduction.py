"""A smaller model with the same complaint: one output, what it does not need gone, and what is behind it an input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from benchmarks.jury.generator import KINDS, SIZES
from benchmarks.jury.program import Port, Program, load

Holds = Callable[[Program], bool]


def reduce(program: Program, holds: Holds) -> Program:
    """The smallest that was found."""
    program = replace(program, blocks=())
    for target in [*program.outputs, *(s.targets[0] for s in program.statements)]:
        smaller = replace(program, outputs=(target,)).prune()
        if len(smaller.statements) < len(program.statements) and holds(smaller):
            program = smaller
            break
    for statement in reversed(program.statements[:-1]):
        if statement in program.statements:
            smaller = _cut(program, statement.targets[0])
            if smaller is not None and holds(smaller):
                program = smaller
    return program


def _cut(program: Program, name: str) -> Program | None:
    """With this value as an input; None where its shape is not one that an input may have."""
    shapes, kind = _show(program, name)
    sizes: list[int | str] = []
    for place in zip(*shapes, strict=True):
        named = [key for key in program.free if tuple(size[key] for size in _list_sizes(program)) == place]
        if len(set(place)) > 1 and not named:
            return None
        sizes.append(named[0] if len(set(place)) > 1 else place[0])
    if kind not in "fib" or "batch" not in sizes[:1]:
        return None
    port = Port(f"x{90 + len(program.ports)}", kind, tuple(sizes), 9)
    statements = [
        replace(s, expression=_rename(s.expression, name, port.name))
        for s in program.statements
        if s.targets != (name,)
    ]
    return replace(program, ports=(*program.ports, port), statements=tuple(statements)).prune()


def _rename(text: str, old: str, new: str) -> str:
    import re

    return re.sub(rf"\b{old}\b", new, text)


def _list_sizes(program: Program) -> list[Mapping[str, int]]:
    first = dict(program.sizes)
    return [first, {key: SIZES[1][key] if key in program.free else size for key, size in first.items()}]


def _show(program: Program, name: str) -> tuple[list[tuple[int, ...]], str]:
    """A value's shape at two sizes, and its kind."""
    shapes: list[tuple[int, ...]] = []
    kind = ""
    for sizes in _list_sizes(program):
        shown: Any = replace(program, outputs=(name,), sizes=sizes).prune()
        model, inputs = load(shown.write())
        with torch.no_grad():
            value = model(*inputs)
        shapes.append(tuple(value.shape))
        kind = KINDS.get(value.dtype, "")
    return shapes, kind
