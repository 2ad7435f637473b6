"""Files in several precisions side by side, and why one of them was chosen."""

from __future__ import annotations

from typing import Any

from onnxproof.proof.quantization import Bounded, NodeCost, Quantization, Quantized
from onnxproof.report.wording import show_size

HEAD = ("precision", "size", "p50 ms", "× float's time", "loss", "verdict", "")
SHOWN_NODES = 5


def tell_lines(record: Quantization | None) -> list[str]:
    """A line for each file, how the data were split, and what stays in float."""
    if record is None:
        return []
    rows = [HEAD, *map(tuple, make_rows(record))]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    table = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[6]]) for row in rows]
    return ["", *(f"  {line}".rstrip() for line in table), *(f"  {line}" for line in tell_more(record))]


def tell_more(record: Quantization) -> list[str]:
    """The split, and the nodes that stay in float."""
    lines = [f"{record.winner} wins; {_tell_split(record)}"] if record.winner else []
    search = record.search
    if search is not None:
        goal = ", ".join(f"{name} within {limit:g}" for name, limit in search.goal.items())
        shown = ", ".join(search.nodes[:SHOWN_NODES]) + " …" * (len(search.nodes) > SHOWN_NODES)
        why = "with any one of them lowered it is missed" if search.minimal else "not shown to be the fewest"
        found = (
            f"{len(search.nodes)} of {search.of} nodes in float ({shown}); {why}"
            if search.nodes
            else "no set of nodes met it"
        )
        lines.append(f"{goal}: {found}; {search.evaluations} full evaluations")
    return lines


def _tell_split(record: Quantization) -> str:
    if not record.judging_rows:
        return "no data: nothing calibrated, nothing judged"
    return f"{record.calibration_rows} rows calibrated, {record.judging_rows} others judged (seed {record.seed})"


def make_rows(record: Quantization) -> list[list[str]]:
    """The float file first, then every candidate."""
    plain = ["float", show_size(record.original_bytes), _show_ms(record.original_p50_ms), "1", "", "", ""]
    return [plain, *(_make_row(one, winner=one.name == record.winner) for one in record.candidates)]


def _make_row(one: Quantized, *, winner: bool) -> list[str]:
    name = f"{one.name}{' *' * winner}"
    if one.verdict is None:
        return [name, "–", "–", "–", "–", "–", (one.reason or "")[:90]]
    size, reason = show_size(one.bytes or 0), (one.reason or "")[:48]
    return [name, size, _show_ms(one.p50_ms), show_bounded(one.time), tell_loss(one), one.verdict.upper(), reason]


def tell_loss(one: Quantized) -> str:
    """The first metric's, else the share of decisions that changed."""
    for metric, drop in one.drops.items():
        return f"{metric} {show_bounded(drop, '+.4f')}"
    return f"changed {show_bounded(one.changed, '.2%')}" if one.changed is not None else "not measured"


def show_bounded(value: Bounded | None, form: str = ".2f") -> str:
    """A number with its interval."""
    return "–" if value is None else f"{value.value:{form}} [{value.low:{form}}, {value.high:{form}}]"


def _show_ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def make_section(record: Quantization | None) -> dict[str, Any]:
    """The same table for the page, and the points of its chart."""
    if record is None:
        return {}
    columns = {name or "reason": place for place, name in enumerate(HEAD)}
    nodes = [
        {
            "node": c.node,
            "op": c.op,
            "introduced": round(c.introduced, 1),
            "inherited": round(c.inherited, 1),
            "place": _tell_place(c),
        }
        for c in record.ranking[:20]
    ]
    return {"columns": columns, "rows": make_rows(record), "more": tell_more(record), "nodes": nodes}


def collect_points(record: Quantization | None) -> list[dict[str, Any]]:
    """Size and time of each file with what it loses."""
    made = [one for one in (record.candidates if record is not None else ()) if one.verdict is not None]
    return [
        {
            "name": one.name,
            "size": one.bytes,
            "time": one.time.value if one.time is not None else 1.0,
            "low": one.time.low if one.time is not None else 1.0,
            "high": one.time.high if one.time is not None else 1.0,
            "loss": tell_loss(one),
            "state": {"ship": "agrees"}.get(str(one.verdict), str(one.verdict)),
        }
        for one in made
    ]


def _tell_place(cost: NodeCost) -> str:
    return f"{cost.file}:{cost.line}" if cost.file else cost.module or ""
