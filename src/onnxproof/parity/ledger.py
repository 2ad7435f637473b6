"""What earlier cases cost and showed. The next one is answered by it, so whoever goes on elsewhere is given it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Ledger:
    """The account of a verification; plain data, which goes with every result."""

    forwards: float = 0.0
    """Seconds of work of all cases."""
    evaluated: float = 0.0
    """Seconds of work of the exact evaluator."""
    shown: dict[str, int] = field(default_factory=dict)
    """Questions, and in how many cases the answer was that no rounding explains it."""
    excused: dict[str, list[float]] = field(default_factory=dict)
    """Output → what constants and rounding excused of an inexact graph where that was not enough."""

    def copy(self) -> Ledger:
        """One that goes on from here by itself."""
        excused = {name: list(amounts) for name, amounts in self.excused.items()}
        return Ledger(self.forwards, self.evaluated, dict(self.shown), excused)

    def for_a_closer_look(self) -> Ledger:
        """What cases showed of the graph; what they cost and showed of the candidate is not held against other inputs."""
        return Ledger(evaluated=self.evaluated, excused=self.copy().excused)

    def count(self, question: str, shown: bool) -> None:
        """Note an answer."""
        self.shown[question] = self.shown.get(question, 0) + shown
