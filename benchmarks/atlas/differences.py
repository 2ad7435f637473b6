"""What the rows say together: differences by the operation of torch that they come from, and refusals by diagnosis."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from benchmarks.atlas.measure import Row, answers, list_aten
from benchmarks.atlas.samples import UNFAIR, WIDE, choose_samples, load_operations

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


def group_differences(rows: Iterable[Row]) -> list[Row]:
    """One entry for each cause, exporter and fairness: where it was seen, and its plainest example."""
    groups: dict[tuple[str, str, bool], list[tuple[Row, Row]]] = defaultdict(list)
    for row in rows:
        for found in row.get("found", ()):
            if any(word in name for name in found["aten"] for word in DRAWS):
                continue  # a dropout inside, which an exporter leaves away
            fair = found["profile"] not in UNFAIR
            groups[name_cause(row, found), row["exporter"], fair].append((row, found))
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
    """The manner of a call → the plainest example of it, without integers that hardly any model meets; of the first result only."""
    examples = dict[str, Row]()
    for row, found in sorted(seen, key=lambda pair: _rank(*pair)):
        if not found["output"] and found["profile"] not in WIDE and len(found["manners"]) == 1:
            told = {name: found[name] for name in ("profile", "given", "expected", "got")}
            told |= {"kind": KINDS.get(found["code"], found["code"]), "seen": []}
            seen_in = examples.setdefault(found["manners"][0], told)["seen"]
            seen_in += [row["dtype"]] * (row["dtype"] not in seen_in)
    return examples


def _rank(row: Row, found: Row) -> tuple[Any, ...]:
    """Plain examples first: the default opset, float32, numbers that go in at the place, few of them."""
    sizes = [len(v[2]) for v in (found["inputs"] or {}).values()]
    plain = found["inputs"] is not None and max(sizes, default=0) < 200
    dtypes = ("float32", "int64", "bool", "float16", "int32")
    place = dtypes.index(row["dtype"]) if row["dtype"] in dtypes else len(dtypes)
    return (
        not plain,
        row["opset"] is not None,
        place,
        found["level"] != "all",
        found["code"] == "OX202",
        not found["given"],
        sum(sizes),
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


def list_operations(rows: Iterable[Row]) -> dict[str, dict[str, str]]:
    """Operation → combination → status."""
    table: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        table[row["op"]][f"{row['exporter']}|{row['dtype']}|{row['opset'] or 'default'}"] = row["status"]
    return {op: dict(sorted(seen.items())) for op, seen in sorted(table.items())}


def find_dtypes(entry: Row) -> dict[str, list[str]]:
    """The manner of a call → the dtypes in which the operation itself was called so."""
    dtypes = defaultdict[str, set[str]](set)
    for name in entry["ops"]:
        op = load_operations()[name]
        for dtype in entry["dtypes"]:
            for sample in choose_samples(op, getattr(torch, dtype)):
                for called, manner, taken in list_aten(op.op, sample) if answers(op.op, sample) else ():
                    known = entry["examples"].get(manner) if called == entry["cause"] else None
                    if known is not None and dtype in known["seen"] and taken:
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
