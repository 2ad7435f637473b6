"""The section of docs/power.md about random models, from docs/jury.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.jury.causes import FOUND_IN_PASSING, MENDED, Record, find_cause

HEADING = "## A jury of random models"
KINDS = {"solos": "one operation each, every form of the grammar", "models": "10 to 30 operations"}


def collect(runs: dict[str, Iterable[Record]]) -> dict[str, Any]:
    """What is kept of the runs: counts, and every model that did not ship with its cause."""
    kept: dict[str, Any] = {}
    for kind, records in runs.items():
        records = list(records)
        verdicts = Counter(r.get("verdict") or ("died" if "died" in r else "raised") for r in records)
        unshipped = []
        for record in records:
            if record.get("verdict") != "ship":
                cause = find_cause(record)
                codes = sorted({f["code"] for f in record.get("findings", ()) if f["severity"] != "note"})
                told = asdict(cause) if cause else None
                unshipped.append(
                    {"model": record["seed"], "verdict": record.get("verdict"), "codes": codes, "cause": told}
                )
        operations = [r["operations"] for r in records if "operations" in r]
        kept[kind] = {
            "count": len(records),
            "verdicts": dict(verdicts),
            "operations": [min(operations, default=0), max(operations, default=0)],
            "seconds": round(sum(r.get("seconds", 0.0) for r in records)),
            "older exporter": sum(bool(r.get("options")) for r in records),
            "unshipped": unshipped,
        }
    return kept


def publish(runs: dict[str, Iterable[Record]], docs: Path) -> None:
    """Write docs/jury.json and put the section at the end of docs/power.md."""
    kept = collect(runs)
    (docs / "jury.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    page = docs / "power.md"
    before = page.read_text(encoding="utf-8").split(HEADING)[0].rstrip()
    page.write_text("\n".join([before, "", *render(docs)]), encoding="utf-8")


def render(docs: Path) -> list[str]:
    """The section's lines; none where there is no run."""
    if not (docs / "jury.json").exists():
        return []
    kept = json.loads((docs / "jury.json").read_text(encoding="utf-8"))
    lines = [
        HEADING,
        "",
        "Made by `make jury`: models that a generator writes from a seed (`benchmarks/jury`: typed operators, shapes solved while building, values kept finite), each exported and "
        "proved with defaults in a process of its own. Whatever does not ship is somebody's bug. Forms that fail by themselves are left out of the larger models, which would "
        "say only that again. `python -m benchmarks.jury --show SEED` prints a model.",
        "",
        "| models | proved | SHIP | REVIEW | BLOCK | died or hung | by the older exporter | CPU seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, run in kept.items():
        counts = run["verdicts"]
        dead = run["count"] - sum(counts.get(verdict, 0) for verdict in ("ship", "review", "block"))
        numbers = [
            run["count"],
            *(counts.get(v, 0) for v in ("ship", "review", "block")),
            dead,
            run["older exporter"],
            run["seconds"],
        ]
        lines.append(f"| {KINDS[kind]} | {' | '.join(map(str, numbers))} |")
    lines += ["", "| whose | what | models | codes | script |", "|---|---|---|---|---|", *_list_causes(kept)]
    passing = ", ".join(f"`upstream/{name}.py`" for name in FOUND_IN_PASSING)
    lines += [
        "",
        f"Found while these were looked into: {passing}.",
        "",
        "Ours, mended since:",
        "",
        *(f"- {one}" for one in MENDED),
        "",
    ]
    return lines


def _list_causes(kept: dict[str, Any]) -> list[str]:
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in kept.values():
        for one in run["unshipped"]:
            cause = one["cause"] or {"whose": "not looked into yet", "what": "", "script": ""}
            rows.setdefault((cause["whose"], cause["what"], cause["script"]), []).append(one)
    lines = []
    for (whose, what, script), ones in sorted(rows.items(), key=lambda row: (row[0][0], -len(row[1]))):
        codes = ", ".join(sorted({code for one in ones for code in one["codes"]} - {"OX004"}))
        named = what or ", ".join(f"`{one['model']}`" for one in ones)
        lines.append(f"| {whose} | {named} | {len(ones)} | {codes} | {f'`upstream/{script}.py`' if script else ''} |")
    return lines
