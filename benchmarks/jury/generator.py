"""From a seed to a model: operators are proposed, tried at two sizes, and kept where their values are reasonable."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from benchmarks.jury.grammar import RULES, Idea, Pool, Value
from benchmarks.jury.program import HEADER, Port, Program, Statement

KINDS = {torch.float32: "f", torch.float64: "d", torch.int64: "i", torch.bool: "b"}
SIZES = ({"batch": 2, "seq": 5}, {"batch": 3, "seq": 7})
SMALLEST = {"batch": 1, "seq": 2}
LARGEST = 60.0
"""Magnitude of a value inside a model."""
OLDER = 0.1
"""Share of models that are exported by tracing."""
KNOWN = (
    ("fib", re.compile(r"digamma|lgamma|hypot|fmax|fmin|logsigmoid|logaddexp|atan2|expm1|logcumsumexp|\.clamp\(0, ")),
    ("i", re.compile(r"rounding_mode|torch\.sign|\.clamp\(-|\.sum\(|\.prod\(|fmod|cumsum")),
)
"""Kind of the result and forms that fail by themselves (see `solos`): every model that has one would say only that again."""
REFUSED = re.compile(
    r"\.mT\b|atanh|huber|smooth_l1|Multihead|Transformer|erfc|logcumsumexp|sinc|rot90|bucketize|xlog1py|entr|logit|antialias|nearest-exact"
)
"""Forms that tracing has no translation for."""


def generate(seed: int) -> Program:
    """The model of a seed."""
    chance = random.Random(seed)
    free = chance.choice((("batch",), ("batch",), ("batch", "seq")))
    sizes = [{"batch": size["batch"], "seq": size["seq"] if "seq" in free else 5} for size in SIZES]
    older = chance.random() < OLDER
    workshop = Workshop(seed, chance, _choose_ports(chance), sizes, (*KNOWN, *([("fib", REFUSED)] if older else [])))
    for _ in range(chance.randint(12, 44)):
        workshop.grow()
    program = workshop.finish(free)
    return replace(program, options={"exporter": "torchscript"} if older else {})


def _choose_ports(chance: random.Random) -> tuple[Port, ...]:
    width, channels = chance.choice((2, 3, 4, 6, 8)), chance.choice((2, 3, 4))
    side = chance.choice((4, 6, 8))
    shapes: list[tuple[str, tuple[int | str, ...], int]] = [
        ("f", ("batch", width), 0),
        ("f", ("batch", "seq", width), 0),
        ("f", ("batch", channels, side, side), 0),
        ("f", ("batch", channels, side), 0),
        ("i", ("batch", "seq"), chance.choice((5, 20))),
        ("i", ("batch", width), 9),
        ("b", ("batch", "seq"), 0),
        ("f", ("batch",), 0),
    ]
    chosen = chance.sample(shapes, chance.randint(1, 3))
    if all(kind != "f" for kind, _, _ in chosen):
        chosen.append(shapes[chance.randrange(4)])
    return tuple(Port(f"x{i}", kind, shape, high) for i, (kind, shape, high) in enumerate(chosen))


class Workshop:
    """A model that grows, and its values at each size."""

    def __init__(
        self,
        seed: int,
        chance: random.Random,
        ports: tuple[Port, ...],
        sizes: Sequence[Mapping[str, int]],
        avoided: Sequence[tuple[str, re.Pattern[str]]] = (),
    ) -> None:
        """`avoided`: kinds of results and forms that are not taken."""
        self.seed, self.chance, self.ports, self.sizes, self.avoided = seed, chance, ports, sizes, avoided
        self.module = nn.Module()
        self.words: dict[str, Any] = {}
        exec(HEADER, self.words)  # the same names that the printed source has
        torch.manual_seed(seed)
        self.places = [{p.name: self._read(p.write(size)) for p in ports} for size in sizes]
        self.statements: list[Statement] = []
        self.values = [self._know(port.name) for port in ports]

    def _read(self, text: str, place: Mapping[str, Any] | None = None) -> Any:
        return eval(text, {**self.words, "self": self.module, **(place or {})})

    def _know(self, name: str) -> Value:
        return Value(name, KINDS[self.places[0][name].dtype], tuple(tuple(p[name].shape) for p in self.places))

    def grow(self) -> None:
        """One statement more, where one of some tries fits."""
        names, weights = list(RULES), [weight for weight, _ in RULES.values()]
        for _ in range(12):
            pool = Pool(self.values, self.chance, len(self.statements))
            try:
                idea = RULES[self.chance.choices(names, weights)[0]][1](pool)
            except LookupError:
                continue
            if self.attempt(idea):
                return

    def attempt(self, idea: Idea) -> bool:
        target = f"v{len(self.statements)}"
        try:
            with torch.no_grad():
                for line in idea.members:
                    exec(line, {**self.words, "self": self.module})
                self.module.eval()
                results = [self._read(idea.expression, place) for place in self.places]
        except (RuntimeError, ValueError, LookupError, TypeError, AssertionError, NotImplementedError):
            return False
        if not all(map(_is_reasonable, results)) or len({(result.dtype, result.dim()) for result in results}) > 1:
            return False
        text = " ".join((idea.expression, *idea.members))
        if any(KINDS[results[0].dtype] in kinds and form.search(text) for kinds, form in self.avoided):
            return False
        for place, result in zip(self.places, results, strict=True):
            place[target] = result
        self.statements.append(Statement((target,), idea.expression, idea.members))
        self.values.append(self._know(target))
        return True

    def finish(self, free: tuple[str, ...]) -> Program:
        """The model: what nothing takes is an output, some of it."""
        taken = {need for statement in self.statements for need in statement.needs}
        loose = [s.targets[0] for s in self.statements if s.targets[0] not in taken]
        outputs = loose[-1:] + self.chance.sample(loose[:-1], min(len(loose) - 1, self.chance.randint(1, 6)))
        whole = Program(self.seed, self.ports, tuple(self.statements), tuple(outputs), (), dict(self.sizes[0]), free)
        program = whole.prune()
        count = len(program.statements)
        blocks: list[tuple[int, int]] = []
        start = self.chance.randint(0, 4)
        while start + 3 < count:
            end = min(count, start + self.chance.randint(3, 7))
            blocks.append((start, end))
            start = end + self.chance.randint(1, 5)
        return replace(program, blocks=tuple(blocks) if self.chance.random() < 0.6 else ())


def _is_reasonable(result: Any) -> bool:
    if not isinstance(result, torch.Tensor) or result.dtype not in KINDS or result.dtype == torch.float64:
        return False
    if not 0 < result.numel() <= 4000 or result.dim() > 5:
        return False
    return bool(torch.isfinite(result).all()) and float(result.double().abs().max()) <= LARGEST
