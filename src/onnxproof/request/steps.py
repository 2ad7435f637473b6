"""Which parts of a proof are made."""

from __future__ import annotations

from dataclasses import dataclass

from onnxproof.request.option import option
from onnxproof.request.reading import switch, whole


@dataclass(frozen=True)
class Steps:
    """Which parts of a proof are made."""

    cases: bool = True
    """Whether planned cases are run on both sides."""
    evaluate: bool = option(
        True, "Measure task quality where --data has labels.", switch, alone=True, off="--no-evaluate"
    )
    bench: bool = option(False, "Time both sides too.", switch, alone=True)
    heal: bool = option(False, "Where the sides part: try other settings until one passes.", switch, alone=True)
    fast: bool = option(False, "Stop at the verdict: no cause and no smallest input is looked for.", switch, alone=True)
    fix: bool = option(
        False, "Write the settings that worked into the configuration.", switch, alone=True, configured=False
    )
    all: bool = option(False, "Prove every subject of the configuration.", switch, alone=True, configured=False)
    jobs: int | None = option(None, "Subjects at a time, with --all.", whole(1), metavar="INTEGER", configured=False)
