"""What earlier cases cost and showed. The next one is answered by it, so whoever goes on elsewhere is given it."""

from __future__ import annotations

from dataclasses import dataclass, field

# The cases whose differences weigh: what they have shown of an output nobody needs to show again.
FAIR = "fair"


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

    def count(self, group: str, question: str, shown: bool) -> None:
        """Note an answer of a case of this group."""
        self.shown[f"{group}/{question}"] = self.shown.get(f"{group}/{question}", 0) + shown

    def settle(self, question: str, enough: int) -> None:
        """As if enough cases that weigh had shown it."""
        self.shown[f"{FAIR}/{question}"] = enough

    def is_settled(self, group: str, question: str, enough: int) -> bool:
        """Whether so many cases of this group, or of those that weigh most, have shown it."""
        return any(self.shown.get(f"{one}/{question}", 0) >= enough for one in (group, FAIR))
