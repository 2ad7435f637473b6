"""A random model as data: statements in order, printable as plain torch source, and smaller ones made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

HEADER = """import math

import torch
from torch import nn
from torch.nn import functional as F
"""
FINISH = """
def make():
    torch.manual_seed({seed})
    model = Model().eval()
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0.0, 0.5)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0)
    return model, ({inputs},)
"""
WORD = re.compile(r"\b[a-z]\w*\b")


@dataclass(frozen=True)
class Port:
    """An input: how an example of it is made, and which of its sizes are free."""

    name: str
    kind: str
    """`f`, `i` or `b`."""
    shape: tuple[int | str, ...]
    """Sizes; a name is a size that the example fixes: `batch` or `seq`."""
    high: int = 0
    """Integers lie below it."""

    def write(self, sizes: Mapping[str, int]) -> str:
        """The expression that makes an example."""
        shape = tuple(sizes.get(size, 0) if isinstance(size, str) else size for size in self.shape)
        if self.kind == "i":
            return f"torch.randint(0, {self.high}, {shape})"
        return f"torch.randn({shape})" if self.kind == "f" else f"torch.rand({shape}) < 0.5"


@dataclass(frozen=True)
class Statement:
    """`targets = expression`, and the members of the module that the expression names."""

    targets: tuple[str, ...]
    expression: str
    members: tuple[str, ...] = ()
    """Lines of `__init__`."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Values that it takes."""
        return tuple(dict.fromkeys(word for word in WORD.findall(self.expression) if re.fullmatch(r"[vx]\d+", word)))

    def write(self) -> str:
        """The line."""
        return f"{', '.join(self.targets)} = {self.expression}"


@dataclass(frozen=True)
class Program:
    """A model: inputs, statements in order, outputs. Runs of statements may be modules of their own."""

    seed: int
    ports: tuple[Port, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...] = ()
    """Half-open runs of statements that are nested modules."""
    sizes: Mapping[str, int] = field(default_factory=lambda: {"batch": 2, "seq": 5})
    free: tuple[str, ...] = ("batch",)
    """The names of sizes that are dynamic."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def dynamic(self) -> dict[str, dict[int, str]]:
        """As `prove` takes it."""
        axes = {p.name: {i: s for i, s in enumerate(p.shape) if s in self.free} for p in self.ports}
        return {name: found for name, found in axes.items() if found}

    def prune(self) -> Program:
        """Without what no output needs."""
        needed, kept = set(self.outputs), []
        for place in reversed(range(len(self.statements))):
            statement = self.statements[place]
            if needed.intersection(statement.targets):
                needed.update(statement.needs)
                kept.append(place)
        kept.reverse()
        blocks = [tuple(sum(old < edge for old in kept) for edge in block) for block in self.blocks]
        return replace(
            self,
            statements=tuple(self.statements[place] for place in kept),
            ports=tuple(port for port in self.ports if port.name in needed),
            blocks=tuple((a, b) for a, b in blocks if b - a > 1),
        )

    def write(self) -> str:
        """The source of a file with `make()`, which returns the model and its example inputs."""
        classes, lines, members = [], [], []
        inner = {start: (start, end) for start, end in self.blocks}
        place = 0
        while place < len(self.statements):
            if place in inner:
                start, place = inner[place]
                name = f"block{len(classes)}"
                text, call = self._write_block(start, place, f"Block{len(classes)}", name)
                classes.append(text)
                members.append(f"self.{name} = Block{len(classes) - 1}()")
                lines.append(call)
                continue
            members += self.statements[place].members
            lines.append(self.statements[place].write())
            place += 1
        lines.append(f"return {', '.join(self.outputs)}")
        arguments = ", ".join(port.name for port in self.ports)
        classes.append(_write_class("Model", members, arguments, lines))
        made = ", ".join(port.write(self.sizes) for port in self.ports)
        return "\n\n".join([HEADER, *classes, FINISH.format(seed=self.seed, inputs=made)])

    def _write_block(self, start: int, end: int, name: str, member: str) -> tuple[str, str]:
        run = self.statements[start:end]
        made = [target for statement in run for target in statement.targets]
        taken = list(dict.fromkeys(need for statement in run for need in statement.needs if need not in made))
        later = {need for statement in self.statements[end:] for need in statement.needs} | set(self.outputs)
        given = [target for target in made if target in later]
        lines = [*(statement.write() for statement in run), f"return {', '.join(given)}"]
        members = [line for statement in run for line in statement.members]
        text = _write_class(name, members, ", ".join(taken), lines)
        return text, f"{', '.join(given)} = self.{member}({', '.join(taken)})"


def _write_class(name: str, members: Iterable[str], arguments: str, lines: Sequence[str]) -> str:
    body = [f"class {name}(nn.Module):"]
    members = list(members)
    if members:
        body += ["    def __init__(self):", "        super().__init__()", *(f"        {line}" for line in members), ""]
    body += [f"    def forward(self, {arguments}):", *(f"        {line}" for line in lines)]
    return "\n".join(body)


def load(source: str, file: str = "<juror>") -> tuple[Any, tuple[Any, ...]]:
    """The model and its example inputs; `file` is where stack traces say that it is."""
    module = ModuleType("juror")
    exec(compile(source, file, "exec"), module.__dict__)  # own source, written above
    model, inputs = module.make()
    return model, inputs
