"""From the facts of a run to docs/power.md and docs/power.json."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

Fact = dict[str, Any]
CLASSES = ("plain", "noise", "edge", "shape", "contract", "runtime")


def write(record: dict[str, Any], folder: Path) -> None:
    """Write both files."""
    folder.mkdir(exist_ok=True)
    (folder / "power.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (folder / "power.md").write_text(render(record), encoding="utf-8")


def render(record: dict[str, Any]) -> str:
    """The page."""
    facts, verifiers = record["facts"], record["verifiers"]
    built = {f["item"]: f for f in facts if f["verifier"] == "build" and f["state"] == "built"}
    faults = {name: f for name, f in built.items() if f["kind"] == "fault"}
    zoo = {name: f for name, f in built.items() if f["kind"] == "zoo" and not f["problem"]}
    answers = {(f["item"], f["verifier"]): f for f in facts if f["verifier"] != "build"}
    lines = [
        "# Measured power",
        "",
        f"Made by `make power` in one run of {record['seconds'] / 60:.0f} minutes: {len(faults)} faulty exports and {len(zoo)} correct ones, "
        f"{len(verifiers)} verifiers. Each verifier gets the PyTorch module, its example inputs and the ONNX file.",
        "",
        "## Faults caught",
        "",
        *_caught(faults, answers, verifiers),
        "",
        "A verifier that raises or dies on an item counts as an alarm there (the user is told), for peers as for us.",
        "",
        "## False alarms, and what it costs",
        "",
        *_alarms(faults, zoo, answers, verifiers),
        "",
        "## Located",
        "",
        *_located(faults, answers),
        "",
        "## What onnxproof got wrong",
        "",
        *_wrong(faults, zoo, answers, facts),
        "",
    ]
    return "\n".join(lines)


def _alarmed(fact: Fact | None) -> bool:
    return fact is not None and (fact["state"] in ("raised", "died") or bool(fact.get("alarm")))


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else "–"


def _caught(faults: dict[str, Fact], answers: dict[tuple[str, str], Fact], verifiers: list[str]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, fact in faults.items():
        groups[fact["cls"]].append(name)
    classes = [c for c in CLASSES if c in groups]
    lines = [f"| verifier | {' | '.join(classes)} | all |", "|---" * (len(classes) + 2) + "|"]
    for verifier in verifiers:
        counts = [_share(sum(_alarmed(answers.get((n, verifier))) for n in groups[c]), len(groups[c])) for c in classes]
        total = sum(_alarmed(answers.get((n, verifier))) for n in faults)
        lines.append(f"| {verifier} | {' | '.join(counts)} | {_share(total, len(faults))} |")
    return lines


def _alarms(
    faults: dict[str, Fact], zoo: dict[str, Fact], answers: dict[tuple[str, str], Fact], verifiers: list[str]
) -> list[str]:
    lines = ["| verifier | false alarms | seconds per model, median | seconds in all |", "|---|---|---|---|"]
    for verifier in verifiers:
        alarms = sum(_alarmed(answers.get((name, verifier))) for name in zoo)
        times = [
            f["seconds"]
            for (n, v), f in answers.items()
            if v == verifier and f["state"] == "answered" and n in (faults | zoo)
        ]
        median = f"{statistics.median(times):.2f}" if times else "–"
        lines.append(f"| {verifier} | {_share(alarms, len(zoo))} | {median} | {sum(times):.0f} |")
    return lines


def _located(faults: dict[str, Fact], answers: dict[tuple[str, str], Fact]) -> list[str]:
    known = {name: fact["culprit"] for name, fact in faults.items() if fact["culprit"]}
    first = sum(
        1
        for name, culprit in known.items()
        if (answers.get((name, "onnxproof")) or {}).get("located", [])[:1] == [culprit]
    )
    if not any((answers.get((name, "onnxproof")) or {}).get("located") for name in known):
        return ["Not measured: onnxproof does not name nodes yet. No peer in the table names one either."]
    return [
        f"onnxproof names the culprit's node first in {_share(first, len(known))} faults with a known node; no peer in the table names one."
    ]


def _wrong(
    faults: dict[str, Fact], zoo: dict[str, Fact], answers: dict[tuple[str, str], Fact], facts: list[Fact]
) -> list[str]:
    rows = []
    for name, fact in faults.items():
        answer = answers.get((name, "onnxproof"))
        if not _alarmed(answer):
            rows.append(f"- missed: `{name.removeprefix('fault:')}` ({fact['cls']})")
    for name in zoo:
        answer = answers.get((name, "onnxproof"))
        if _alarmed(answer):
            rows.append(
                f"- false alarm: `{name.removeprefix('zoo:')}`: {(answer or {}).get('why') or (answer or {}).get('state')}"
            )
    for fact in facts:
        if fact["verifier"] == "onnxproof" and fact["state"] in ("raised", "died"):
            rows.append(f"- {fact['state']}: `{fact['item']}`: {fact.get('why', '')}")
        if fact["verifier"] == "build" and (fact["state"] in ("failed", "died") or fact.get("problem")):
            rows.append(f"- not exported: `{fact['item']}`: {fact.get('why') or fact.get('problem') or fact['state']}")
    return rows or ["Nothing."]
