"""What the rows say together: differences by the operation of torch that they come from, and refusals by diagnosis."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from benchmarks.atlas.measure import list_aten, list_samples
from benchmarks.atlas.rows import Row
from benchmarks.atlas.samples import UNFAIR, WIDE, load_operations
from benchmarks.atlas.scripts import MOST_SHOWN

# What a difference is about, from its code.
KINDS = {
    "OX201": "another value",
    "OX202": "another value, within the default tolerance",
    "OX205": "NaN or infinity on one side",
    "OX207": "another integer or boolean",
    "OX214": "another dtype",
    "OX215": "another shape",
    "OX220": "another value",
}
# Calls inside an operation that draw random numbers.
DRAWS = ("bernoulli", "dropout", "rand")


def name_cause(row: Row, found: Row) -> str:
    """The operation of torch that a call consists of; of several, the sample's own name."""
    aten = found["aten"]
    return str(aten[0]) if len(aten) == 1 else f"torch.{row['op'].split('.')[0] if '.' not in row['op'] else row['op']}"


def list_found(row: Row) -> list[Row]:
    """The differences of a row, without those of a dropout inside, which an exporter leaves away."""
    return [
        found for found in row.get("found", ()) if not any(word in name for name in found["aten"] for word in DRAWS)
    ]


def group_differences(rows: Iterable[Row]) -> list[Row]:
    """One entry for each cause, exporter and fairness: where it was seen, and its plainest example."""
    groups: dict[tuple[str, str, bool], list[tuple[Row, Row]]] = defaultdict(list)
    for row in rows:
        for found in list_found(row):
            groups[name_cause(row, found), row["exporter"], found["profile"] not in UNFAIR].append((row, found))
    entries = [
        _describe(*key, seen) for key, seen in sorted(groups.items(), key=lambda item: (not item[0][2], *item[0][:2]))
    ]
    fair = {(e["cause"], e["exporter"]) for e in entries if e["fair"]}
    # What differs on fair values already is told once.
    return [e for e in entries if e["fair"] or (e["cause"], e["exporter"]) not in fair]


def _describe(cause: str, exporter: str, fair: bool, seen: list[tuple[Row, Row]]) -> Row:
    row, found = min(seen, key=lambda pair: _rank(*pair))
    default = {r["dtype"] for r, _ in seen if r["opset"] is None}
    return {
        "cause": cause, "exporter": exporter, "fair": fair, "op": row["op"], "dtype": row["dtype"], "key": row["key"],
        "kind": KINDS.get(found["code"], found["code"]), "profile": found["profile"], "level": found["level"],
        "given": found["given"], "expected": found["expected"], "got": found["got"], "message": found["message"],
        "nodes": row["nodes"][:8], "sample": found["sample"], "output": found["output"],
        "ops": sorted({r["op"] for r, _ in seen}), "dtypes": sorted(default or {r["dtype"] for r, _ in seen}),
        "opsets": sorted({r.get("written") or r["opset"] for r, _ in seen}),
        "examples": _pick_examples(seen),
        "profiles": sorted({f["profile"] for _, f in seen}),
        "levels": sorted({f["level"] for _, f in seen}),
    }  # fmt: skip


def _pick_examples(seen: list[tuple[Row, Row]]) -> dict[str, Row]:
    """The manner of a call → its plainest example at the default opset, without integers that hardly any model meets; of the first result only."""
    examples = dict[str, Row]()
    for row, found in sorted((pair for pair in seen if pair[0]["opset"] is None), key=lambda pair: _rank(*pair)):
        if not found["output"] and found["profile"] not in WIDE and len(found["manners"]) == 1:
            told = {name: found[name] for name in ("profile", "given", "expected", "got")}
            told |= {"kind": KINDS.get(found["code"], found["code"]), "seen": []}
            seen_in = examples.setdefault(found["manners"][0], told)["seen"]
            seen_in += [row["dtype"]] * (row["dtype"] not in seen_in)
    return examples


def _rank(row: Row, found: Row) -> tuple[Any, ...]:
    """Plain examples first: the default opset, float32, numbers that go in at the place, few of them."""
    dtypes = ("float32", "int64", "bool", "float16", "int32")
    place = dtypes.index(row["dtype"]) if row["dtype"] in dtypes else len(dtypes)
    return (
        found["size"] > MOST_SHOWN,
        row["opset"] is not None,
        place,
        found["level"] != "all",
        found["code"] == "OX202",
        not found["given"],
        found["size"],
        row["key"],
    )


def group_refusals(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Diagnosis → how often, and which operations, by exporter."""
    codes: dict[str, dict[str, Any]] = {}
    for row in rows:
        for refusal in row.get("refused", ()) if row["status"] == "not exported" else ():
            entry = codes.setdefault(refusal["code"], {"example": refusal["message"], "operations": {}})
            entry["operations"].setdefault(row["exporter"], set()).add(row["op"])
    for entry in codes.values():
        entry["operations"] = {exporter: sorted(ops) for exporter, ops in sorted(entry["operations"].items())}
    return dict(sorted(codes.items()))


def count_statuses(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Exporter, dtype and opset → status → combinations."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        table[f"{row['exporter']}|{row['dtype']}|{row['opset'] or 'default'}"][row["status"]] += 1
    return {key: dict(counts) for key, counts in table.items()}


def list_operations(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Operation → exporter → what came of it at which opsets → the dtypes of which that is so."""
    seen: dict[tuple[str, str, str], dict[str, list[int | None]]] = {}
    for row in rows:
        by_status = seen.setdefault((row["op"], row["exporter"], row["dtype"]), defaultdict(list))
        by_status[row["status"]].append(row["opset"])
    table: dict[str, dict[str, dict[str, list[str]]]] = {}
    for (op, exporter, dtype), by_status in sorted(seen.items()):
        told = "; ".join(f"{status}: {tell_opsets(opsets)}" for status, opsets in by_status.items())
        table.setdefault(op, {}).setdefault(exporter, {}).setdefault(told, []).append(dtype)
    return table


def tell_opsets(opsets: Iterable[int | None]) -> str:
    """`default, 18 to 22, 25`."""
    parts, ends = list[str](), list[list[int]]()
    for opset in sorted(opsets, key=lambda number: number or 0):
        if opset is None:
            parts.append("default")
        elif ends and ends[-1][1] == opset - 1:
            ends[-1][1] = opset
        else:
            ends.append([opset, opset])
    return ", ".join(parts + [f"{a} to {b}" if a != b else str(a) for a, b in ends])


def compare_dtypes(rows: Iterable[Row]) -> dict[str, Row]:
    """Exporter and dtype at the default opset → the operations that differ on fair values, and which of them do not in float32."""
    causes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        if row["opset"] is None:
            causes[row["exporter"], row["dtype"]] |= _list_fair_causes(row)
    return {
        f"{exporter}|{dtype}": {"differ": len(found), "only": sorted(found - causes[exporter, "float32"])}
        for (exporter, dtype), found in list(causes.items())
    }


def compare_opsets(rows: Iterable[Row]) -> dict[str, Row]:
    """Exporter and opset → what came of it, and the operations that differ on fair values there or at the default opset only, where both ran."""
    rows = list(rows)
    default = {(row["exporter"], row["dtype"], row["op"]): row for row in rows if row["opset"] is None}
    table: dict[str, Row] = {}
    for row in sorted((row for row in rows if row["opset"] is not None), key=lambda r: (r["exporter"], r["opset"])):
        told = table.setdefault(
            f"{row['exporter']}|{row['opset']}", {"dtypes": set(), "counts": Counter(), "only here": {}, "not here": {}}
        )
        told["dtypes"].add(row["dtype"])
        told["counts"][row["status"]] += 1
        other = default.get((row["exporter"], row["dtype"], row["op"]), {"status": "not measured"})
        if {row["status"], other["status"]} <= {"agrees", "differs"}:
            here, there = _list_fair_causes(row), _list_fair_causes(other)
            for name, causes in (("only here", here - there), ("not here", there - here)):
                for cause in causes:
                    told[name].setdefault(cause, set()).add(row["dtype"])
    for told in table.values():
        told["dtypes"] = sorted(told["dtypes"])
        for name in ("only here", "not here"):
            told[name] = {cause: sorted(dtypes) for cause, dtypes in sorted(told[name].items())}
    return table


def _list_fair_causes(row: Row) -> set[str]:
    return {name_cause(row, found) for found in list_found(row) if found["profile"] not in UNFAIR}


def find_dtypes(entry: Row) -> dict[str, list[str]]:
    """The manner of a call → the dtypes in which the operation itself was called so."""
    dtypes = defaultdict[str, set[str]](set)
    for name in entry["ops"]:
        op = load_operations()[name]
        for dtype in entry["dtypes"]:
            known = {manner for manner, one in entry["examples"].items() if dtype in one["seen"]}
            for sample in list_samples(op, getattr(torch, dtype)) if known else ():
                for called, manner, taken in list_aten(op.op, sample):
                    if called == entry["cause"] and manner in known and taken:
                        dtypes[manner].add(taken)
    return {manner: sorted(found) for manner, found in sorted(dtypes.items())}


def pick_for_lint(atlas: Mapping[str, Any]) -> dict[str, Any]:
    """What a lint needs: differences on fair values that come from one operation of torch by itself and that a script shows."""
    kept = [
        {
            **{"cause": e["cause"], "exporter": e["exporter"], "manner": manner, "dtypes": dtypes},
            **{name: value for name, value in e["examples"][manner].items() if name != "seen"},
        }
        for e in atlas["differences"]
        if e["fair"] and e["script"]
        for manner, dtypes in e["called"].items()
    ]
    return {"torch": atlas["versions"]["torch"], "onnxruntime": atlas["versions"]["onnxruntime"], "differences": kept}
