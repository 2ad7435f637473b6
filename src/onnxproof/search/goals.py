"""Regimes: on which side of a decision the values of a model are.

A decision is a place where a model changes its behaviour: the zero of a ReLU, a limit of a Clip, a comparison, the pole of a
division. `difference` is the value minus the place. Each decision has six goals: some element above, some below, two elements of
one row, a whole row. A decision whose name ends in `=` is a place to be hit exactly and has one goal. A goal is reached where its
number is positive; until then the number says how far it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from onnxproof.tensors.arrays import Floats

SIDES = ("above", "below", "two above", "two below", "row above", "row below")
# How near counts as hit: nearer than any two float32 numbers of ordinary size.
EXACT = 1e-9
# Goal → its number: positive where it is reached.
Numbers = dict[str, float]


def steer(difference: torch.Tensor, side: str) -> torch.Tensor:
    """A smooth number that grows towards a goal in every row at once: each row is a start of its own."""
    rows: torch.Tensor = _flatten_rows(difference)
    signed = rows if side.endswith("above") else -rows
    if side.startswith("two"):
        return signed.topk(min(2, signed.shape[-1]), -1).values.amin(-1).sum()
    if not side.startswith("row"):
        return signed.amax(-1).sum()
    # The lowest value of a row, softly, so that all low ones are lifted together.
    sharpness = 4.0 / (signed.detach().abs().mean() + 1e-12)
    return -(torch.logsumexp(-signed * sharpness, -1) / sharpness).sum()


def _flatten_rows(difference: Any) -> Any:
    return difference.reshape(-1, difference.shape[-1] if difference.ndim else 1)


def list_goals(decision: str, difference: Floats) -> Numbers:
    """All goals of one decision."""
    if not difference.size:
        return {}
    # A NaN is on neither side, and would hide the others from max and min.
    rows = np.nan_to_num(_flatten_rows(difference), nan=0.0)
    goals = {"above": rows.max()}
    if not decision.endswith("="):
        goals |= {"below": -rows.min(), "row above": rows.min(-1).max(), "row below": -rows.max(-1).min()}
        # Of two elements, both are the row, which is a goal already.
        if rows.shape[1] > 2:
            ordered = np.partition(rows, (1, rows.shape[1] - 2), axis=-1)
            goals |= {"two above": ordered[:, -2].max(), "two below": -ordered[:, 1].min()}
    return {f"{decision} {side}": float(number) for side, number in goals.items()}


def leave_half(value: Any) -> Any:
    """Positive where a value is an integer and a half."""
    return EXACT - abs(value - _floor(value) - 0.5)


def leave_integer(value: Any) -> Any:
    """Positive where a value is an integer."""
    return EXACT - abs(value - _floor(value + 0.5))


def _floor(value: Any) -> Any:
    return torch.floor(value) if isinstance(value, torch.Tensor) else np.floor(value)


def split(goal: str) -> tuple[str, str]:
    """Decision and side of a goal."""
    side = next(s for s in reversed(SIDES) if goal.endswith(f" {s}"))  # the longer ones first
    return goal[: -len(side) - 1], side


class Coverage:
    """Which goals were reached, and the best number of the others."""

    def __init__(self) -> None:
        self.best: Numbers = {}

    def add(self, seen: Mapping[str, float]) -> list[str]:
        """Take in what an input showed; the goals it reached for the first time."""
        fresh = [goal for goal, number in seen.items() if number > 0 and self.best.get(goal, 0.0) <= 0]
        for goal, number in seen.items():
            self.best[goal] = max(number, self.best.get(goal, -np.inf))
        return fresh

    @property
    def reached(self) -> int:
        """How many goals were reached."""
        return sum(number > 0 for number in self.best.values())

    def missing(self) -> list[str]:
        """Goals not reached yet."""
        return [goal for goal, number in self.best.items() if number <= 0]
