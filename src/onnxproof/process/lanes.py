"""Pieces of work in several children at once: a death costs the piece it came in, and that is tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from onnxproof.process.orders import Order
from onnxproof.process.supervisor import supervise

Piece = TypeVar("Piece")


@dataclass
class Lane(Generic[Piece]):
    """One child after the other, working through some pieces."""

    order: Callable[[Sequence[Piece]], Order]
    receive: Callable[[bytes, Lane[Piece]], Any]
    """Hears what the child says, and notes in the lane where it is and what is done."""
    limit: float
    attempts: int
    left: list[Piece]
    at: Piece | None = None
    done: list[Piece] = field(default_factory=list)
    lost: list[Piece] = field(default_factory=list)
    error: Exception | None = None
    _deaths: list[Piece] = field(default_factory=list)

    def run(self) -> None:
        """Until every piece is done or given up; raises what a child said or did wrong."""
        while self.left:
            self.at = None
            supervise(self.order(self.left), lambda body: self.receive(body, self), lambda: self.limit)
            if self.error is not None:
                raise self.error
            self.left = [piece for piece in self.left if piece not in self.done]
            if self.left:
                # A child that dies before its first word must count too, or it would be started for ever.
                piece = self.at if self.at is not None and self.at in self.left else self.left[0]
                self._deaths.append(piece)
                if self._deaths.count(piece) >= self.attempts:
                    self.lost.append(piece)
                    self.left.remove(piece)


def run_lanes(lanes: Sequence[Lane[Any]]) -> None:
    """All lanes at once; the first error is raised when all have ended."""
    with ThreadPoolExecutor(len(lanes) or 1) as pool:
        for ended in [pool.submit(lane.run) for lane in lanes]:
            ended.result()
