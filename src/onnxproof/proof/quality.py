"""The `quality` part of a proof: facts about a data set, no opinions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Ends = Mapping[str, Any]


@dataclass(frozen=True)
class Quality:
    """What both sides answered for the examples of a data set."""

    task: str = "custom"
    n: int = 0
    scale: str = "value"
    """What the scores are: probability, logit, log-probability, decision or value."""
    output: str = "output"
    baseline: Mapping[str, float] = field(default_factory=dict)
    candidate: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, Ends] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    confusion: Mapping[str, Any] | None = None
    flips: Sequence[Mapping[str, Any]] = ()
    flip_count: int = 0
    """All flips; the list may hold fewer of very many."""
    flip_rate: Mapping[str, float] | None = None
    tests: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, Any] | None = None
    calibration: Mapping[str, Any] | None = None
    traps: Mapping[str, Any] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] | None = None
    classes: Sequence[str] = ()
    positive: str | None = None
    guessed: bool = False
    """Whether the order of the classes is that of the alphabet, because nobody gave it."""
    measured: int | None = None
    """Examples with a label and an answer on both sides: metrics are about these."""
    unlabelled: int = 0
    unanswered: Mapping[str, Any] = field(default_factory=dict)
    """Examples that a side answered with NaN: on each, on both, and the first that only one did."""
    score_difference: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    rows: int | None = None
    """Rows of the data, where that is known; fewer evaluated ones were lost."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    workers: int = 1
    where: str = "local"
    """`local`, `processes` or `ray`."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Quality:
        """Read it back; fields of a later version are ignored."""
        known = {name: data[name] for name in Quality.__dataclass_fields__ if data.get(name) is not None}
        return Quality(**{"flip_count": len(known.get("flips", ())), **known})

    @property
    def unexplained(self) -> list[Mapping[str, Any]]:
        """Flips that rounding does not explain."""
        return [flip for flip in self.flips if flip.get("explained") is False]

    def value(self, metric: str, side: str = "candidate") -> float | None:
        """A metric, or one of a class: `recall`, `recall[fraud]`; None where there is none."""
        name, _, rest = metric.partition("[")
        if rest.endswith("]"):
            found = self.per_class.get(rest[:-1], {}).get(side, {}).get(name)
        else:
            found = getattr(self, side).get(metric)
        return None if found is None else float(found)

    def low_end(self, metric: str, side: str = "candidate") -> float | None:
        """The low end of a metric's interval, where it has one."""
        name, _, rest = metric.partition("[")
        if rest.endswith("]"):
            low = self.per_class.get(rest[:-1], {}).get(side, {}).get(f"{name}_low")
        else:
            low = (self.intervals.get(metric, {}).get(side) or [None])[0]
        return None if low is None else float(low)

    def shares(self) -> dict[str, float]:
        """Class → share of the labelled examples."""
        total = sum(entry.get("support", 0) for entry in self.per_class.values())
        whole = self.n - self.unlabelled if self.task == "multilabel" else total
        return {name: entry.get("support", 0) / max(whole, 1) for name, entry in self.per_class.items()}
