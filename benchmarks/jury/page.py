"""The section of docs/power.md about random models, from docs/jury.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.jury.causes import FOUND_IN_PASSING, MENDED, Record, find_cause
from benchmarks.jury.mutation import CHANGES

HEADING = "## A jury of random models"
KINDS = {"solos": "one operation each, every form of the grammar", "models": "larger ones"}


def collect(runs: Mapping[str, Iterable[Record]]) -> dict[str, Any]:
    """What is kept of the runs: counts, and every model that did not ship with its cause."""
    kept: dict[str, Any] = {}
    for kind in KINDS:
        records = list(runs.get(kind, ()))
        if not records:
            continue
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
            "states": len({r.get("state") for r in records}),
            "unshipped": unshipped,
            "proved": [record["seed"] for record in records],
        }
    judged = [r for r in runs.get("mutants", ()) if "what" in r]
    return {**kept, **({"mutants": collect_mutants(judged)} if judged else {})}


def collect_mutants(judged: Sequence[Record]) -> dict[str, Any]:
    """Kind of change → how many, how many were caught, and of how many of these the culprit was named."""
    kinds: dict[str, Counter[str]] = {}
    for record in judged:
        counts = kinds.setdefault(record["kind"], Counter())
        caught = record["verdict"] != "ship"
        counts.update(made=1, caught=int(caught), named=caught and record["right"] is not None)
        counts.update(right=caught and bool(record["right"]), exactly=caught and bool(record["exactly"]))
    missed = [{k: r[k] for k in ("seed", "kind", "what", "shown")} for r in judged if r["verdict"] == "ship"]
    states = len({r.get("state") for r in judged})
    return {"kinds": {kind: dict(kinds[kind]) for kind in sorted(kinds)}, "missed": missed, "states": states}


def add(known: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """A run and an earlier one; of a model that both proved, what the new one says."""
    if known is None:
        return new
    # Of the first runs only those that did not ship are on record.
    before = known.get("proved", [one["model"] for one in known["unshipped"]])
    again = {*before} & {*new["proved"]}
    if again:
        known, before = leave_out(known, again), [seed for seed in before if seed not in again]
    lows, highs = zip(known["operations"], new["operations"], strict=True)
    counted = ("count", "seconds", "older exporter", "states", "unshipped")
    summed = {key: known[key] + new[key] for key in counted}
    verdicts = Counter(known["verdicts"]) + Counter(new["verdicts"])
    whole = {"verdicts": dict(verdicts), "operations": [min(lows), max(highs)], "proved": [*before, *new["proved"]]}
    return {**summed, **whole}


def leave_out(known: dict[str, Any], seeds: set[Any]) -> dict[str, Any]:
    """A run without some of its models: those that did not ship are on record, all others did."""
    gone = [one["verdict"] or "died" for one in known["unshipped"] if one["model"] in seeds]
    shipped = ["ship"] * (len(seeds) - len(gone))
    verdicts = Counter(known["verdicts"]) - Counter([*gone, *shipped])
    unshipped = [one for one in known["unshipped"] if one["model"] not in seeds]
    return {**known, "verdicts": dict(verdicts), "unshipped": unshipped, "count": known["count"] - len(seeds)}


def publish(runs: Mapping[str, Iterable[Record]], docs: Path) -> None:
    """Write docs/jury.json, where kinds without a run stay as they are and larger models are added to those proved before, and put the
    section at the end of docs/power.md."""
    known = json.loads((docs / "jury.json").read_text(encoding="utf-8"))
    kept = {**known, **collect(runs)}
    if kept.get("models") is not known.get("models"):
        kept["models"] = add(known.get("models"), kept["models"])
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
    for kind, run in _list_runs(kept):
        counts = run["verdicts"]
        dead = run["count"] - sum(counts.get(verdict, 0) for verdict in ("ship", "review", "block"))
        numbers = [
            run["count"],
            *(counts.get(v, 0) for v in ("ship", "review", "block")),
            dead,
            run["older exporter"],
            run["seconds"],
        ]
        low, high = run["operations"]
        size = f", {low} to {high} operations" if high > low else ""
        lines.append(f"| {KINDS[kind]}{size} | {' | '.join(map(str, numbers))} |")
    several = max((run.get("states", 1) for _, run in _list_runs(kept)), default=1)
    if several > 1:
        lines += [
            "",
            f"The code was mended while they were proved: the verdicts are those of {several} states of it; those of one operation are of an earlier one.",
        ]
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
        *(_render_mutants(kept["mutants"]) if "mutants" in kept else ()),
    ]
    return lines


def _list_runs(kept: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(kind, kept[kind]) for kind in KINDS if kind in kept]


def _render_mutants(kept: dict[str, Any]) -> list[str]:
    """The table of wrong changes."""
    rows = [(kind, CHANGES[kind].__doc__ or "", counts) for kind, counts in kept["kinds"].items()]
    rows.append(("all", "", dict(sum((Counter(counts) for counts in kept["kinds"].values()), Counter()))))
    lines = [
        "Files that shipped, changed by one of the ways below (`benchmarks/jury/mutation.py`) and kept where the runtime answers ordinary inputs otherwise by far more than module "
        "and right file differ; proved with `--onnx` and defaults. The first culprit is right where the changed node is it or belongs to the piece that it names. "
        f"The verdicts are those of {kept['states']} states of the code: what had named a wrong culprit was mended and asked again (before that it was right for 60 of 74), "
        "so the column says what is mended, not what new files would show.",
        "",
        "| change | made | caught | first culprit: right | the node itself | none named |",
        "|---|---|---|---|---|---|",
    ]
    for kind, why, counts in rows:
        told = f"{kind}: {why[0].lower()}{why[1:].rstrip('.')}" if why else kind
        caught, named = counts.get("caught", 0), counts.get("named", 0)
        numbers = [counts["made"], caught, counts.get("right", 0), counts.get("exactly", 0), caught - named]
        lines.append(f"| {told} | {' | '.join(map(str, numbers))} |")
    lines += [""]
    for one in kept["missed"]:
        lines.append(f"- missed: {one['what']} (`{one['seed']}`), {one['shown']['size']:.1g} of the output's scale")
    return [*lines, ""] if kept["missed"] else lines


def _list_causes(kept: dict[str, Any]) -> list[str]:
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for _, run in _list_runs(kept):
        for one in run["unshipped"]:
            cause = one["cause"] or {"whose": "not looked into yet", "what": "", "script": ""}
            rows.setdefault((cause["whose"], cause["what"], cause["script"]), []).append(one)
    lines = []
    for (whose, what, script), ones in sorted(rows.items(), key=lambda row: (row[0][0], -len(row[1]))):
        codes = ", ".join(sorted({code for one in ones for code in one["codes"]} - {"OX004"}))
        named = what or ", ".join(f"`{one['model']}`" for one in ones)
        lines.append(f"| {whose} | {named} | {len(ones)} | {codes} | {f'`upstream/{script}.py`' if script else ''} |")
    return lines
