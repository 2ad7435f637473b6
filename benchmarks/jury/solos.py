"""Models of a single operation: every form that the grammar can propose, once. What fails alone needs no reduction."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from benchmarks.jury.generator import SIZES, Workshop
from benchmarks.jury.grammar import RULES, Pool
from benchmarks.jury.program import Port, Program

PORTS = (
    Port("x0", "f", ("batch", 6)),
    Port("x1", "f", ("batch", "seq", 4)),
    Port("x2", "f", ("batch", 4, 6, 6)),
    Port("x3", "f", ("batch", 4, 6)),
    Port("x4", "i", ("batch", 6), 9),
    Port("x5", "b", ("batch", 6)),
    Port("x6", "i", ("batch", "seq"), 20),
    Port("x7", "f", ("batch", 1, 5)),
    Port("x8", "f", ("batch",)),
)
TRIES = 150
"""Proposals of each rule."""


def list_solos() -> dict[str, Program]:
    """Form → a model of it."""
    solos: dict[str, Program] = {}
    for name, (_, propose) in RULES.items():
        chance = random.Random(name)
        for number in range(TRIES):
            workshop = Workshop(number, chance, PORTS, [{**size, "seq": 5} for size in SIZES])
            try:
                idea = propose(Pool(workshop.values, chance, 0))
            except LookupError:
                continue
            form = f"{name}: {_strip(idea.expression + ' ' + ' '.join(idea.members))}"
            if form not in solos and workshop.attempt(idea):
                solos[form] = replace(workshop.finish(("batch",)), blocks=())
    return solos


def _strip(text: str) -> str:
    """Without numbers and names."""
    return re.sub(r"\d+", "#", re.sub(r"\b[xv]\d+\b", "x", re.sub(r"\d+\.\d+", "#", text))).strip()
