"""A chart with its words, and the page's content as it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxproof.report import charts


@dataclass(frozen=True)
class Figure:
    """A chart with what it says in words and in a table."""

    key: str
    title: str
    caption: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: int = 0
    """Rows that the table leaves out."""
    min_width: int = 0
    """Pixels below which the chart scrolls inside its frame."""


@dataclass
class Content:
    """For the template (`context`) and for the page's script (`data`)."""

    context: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    specs: dict[str, Any] = field(default_factory=dict)

    def draw(self, chart: charts.Chart | None, figure: Figure) -> list[Figure]:
        """Keep a chart under its figure's key; nothing where there is no chart."""
        if chart is None:
            return []
        self.specs[figure.key] = chart.to_dict(validate=False)
        return [figure]
