"""A chart with its words, and the page's content as it is put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxproof.report.charts import Chart


@dataclass(frozen=True)
class Figure:
    """A chart with what it says in words and in a table."""

    key: str
    title: str
    caption: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """Head → the field of a row that stands below it."""
    rows: Sequence[Any] = ()
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

    def draw(self, figure: Figure, chart: Callable[..., Chart], rows: Sequence[Any], *options: Any) -> list[Figure]:
        """Keep the chart of these rows under its figure's key; nothing where there is no row."""
        if rows:
            self.specs[figure.key] = chart(rows, *options).properties(width="container").to_dict(validate=False)
        return [figure] * bool(rows)
