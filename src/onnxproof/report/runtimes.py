"""The same file on several runtimes, as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onnxproof.findings import Finding
from onnxproof.proof.runtimes import RuntimeResult, find_changes, group_results, name_group

HEAD = ("runtime", "verdict", "worst noise ratio", "p50 ms", "")


def tell_lines(results: Sequence[RuntimeResult]) -> list[str]:
    """A line for each group of neighbours, the first change, and where the file ships."""
    if not results:
        return []
    rows = [HEAD, *map(make_row, group_results(results))]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    table = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows
    ]
    return ["", *(f"  {line}".rstrip() for line in table), *_tell_changes(results), f"  {advise(results)}"]


def make_section(results: Sequence[RuntimeResult]) -> dict[str, Any]:
    """The same table for the page."""
    columns = {name or "reason": place for place, name in enumerate(HEAD)}
    return {"columns": columns, "rows": list(map(make_row, group_results(results))), "advice": advise(results)}


def make_row(group: Sequence[RuntimeResult]) -> tuple[str, ...]:
    """Runtime, verdict, worst noise ratio, median, and the first reason."""
    reason = next((f"{finding.code} {finding.message}" for finding in group[0].findings), "")
    ratios, times = (one.worst_noise_ratio for one in group), (one.p50_ms for one in group)
    return name_group(group), group[0].verdict.upper(), _show_span(ratios), _show_span(times), reason[:90]


def _show_span(values: Iterable[float | None]) -> str:
    known = [f"{value:.3g}" for value in sorted(value for value in values if value is not None)]
    return "–".join(dict.fromkeys((known[0], known[-1]))) if known else "–"


def _tell_changes(results: Sequence[RuntimeResult]) -> list[str]:
    """The first release that answers otherwise than the one before it, and where that comes from."""
    lines = []
    for before, after in find_changes(results)[:1]:
        ends = (f"{one.version} ({one.verdict.upper()})" for one in (before, after))
        line = f"  changed between {' and '.join(ends)}"
        worse = next((one.findings[0] for one in (after, before) if one.findings), None)
        lines.append(line + (_tell_place(worse) if worse is not None else ""))
        scripts = [one.reproduction for one in (after, before) if one.reproduction is not None]
        lines += [f"  python {script}/reproduce.py shows it on either release" for script in scripts]
    return lines


def _tell_place(finding: Finding) -> str:
    where = finding.where
    parts = [f"node {where.node}"] * bool(where.node) + [f"module {where.module}"] * bool(where.module)
    parts += [f"{where.file}:{where.line}"] * bool(where.file)
    return f" ({', '.join(parts)})" if parts else ""


def advise(results: Sequence[RuntimeResult]) -> str:
    """The runtimes on which the file ships."""
    ships = [name_group(group) for group in group_results(results) if group[0].verdict == "ship"]
    return f"ships on: {', '.join(ships) or 'none of them'}. Times are the median of a few runs, as busy as the machine was"
