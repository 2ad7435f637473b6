"""From the facts of a run to docs/power.md and docs/power.json."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.jury.page import render as render_jury
from benchmarks.plain import render as render_plain
from benchmarks.power.verifiers import SEARCH_FAULTS, SEARCH_ZOO

Fact = dict[str, Any]
REASONS = {
    "fault:expm1-cancellation": "expm1(x) is exported as exp(x) − 1, which loses small values; onnxproof counts an absolute error of a few ulp of 1 "
    "as rounding there, as it does for the sigmoid and log1p of onnxruntime, whose accuracy is absolute too"
}
"""Why a known miss is one: kept beside the numbers."""
BEST = "onnxproof --search"
CLASSES = ("plain", "noise", "edge", "shape", "contract", "runtime")


def write(record: dict[str, Any], folder: Path) -> None:
    """Write both files."""
    folder.mkdir(exist_ok=True)
    (folder / "power.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page = "\n".join([render(record), *render_plain(folder), *render_jury(folder)])
    (folder / "power.md").write_text(page, encoding="utf-8")


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
        f"{len(verifiers)} verifiers. Each verifier gets the PyTorch module, its example inputs and the ONNX file."
        + (
            f" Asked again later, in parts, and of items that are newer than that run: {', '.join(record['anew'])} alone; the numbers behind the strokes say of how many."
            if "anew" in record
            else ""
        ),
        "",
        "## Faults caught",
        "",
        *_caught(faults, answers, verifiers),
        "",
        f"*onnxproof* is what its defaults reach in their default time. *onnxproof --search* adds a search of up to {SEARCH_FAULTS:.0f} s on faults and of "
        f"{SEARCH_ZOO:.0f} s on correct models. *normal inputs only* is the same judgement on those default cases that hold random normal values.",
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
        counts = [_count(groups[c], answers, verifier) for c in classes]
        lines.append(f"| {verifier} | {' | '.join(counts)} | {_count(list(faults), answers, verifier)} |")
    return lines


def _count(names: list[str], answers: dict[tuple[str, str], Fact], verifier: str) -> str:
    """Alarms among those that a verifier was asked about."""
    asked = [answers[name, verifier] for name in names if (name, verifier) in answers]
    return _share(sum(map(_alarmed, asked)), len(asked))


def _alarms(
    faults: dict[str, Fact], zoo: dict[str, Fact], answers: dict[tuple[str, str], Fact], verifiers: list[str]
) -> list[str]:
    lines = ["| verifier | false alarms | seconds per model, median | seconds in all |", "|---|---|---|---|"]
    for verifier in verifiers:
        times = [
            f["seconds"]
            for (n, v), f in answers.items()
            if v == verifier and f["state"] == "answered" and n in (faults | zoo)
        ]
        median = f"{statistics.median(times):.2f}" if times else "–"
        lines.append(f"| {verifier} | {_count(list(zoo), answers, verifier)} | {median} | {sum(times):.0f} |")
    return [*lines, *_tell_trials([f for (_, v), f in answers.items() if v == "onnxproof" and "tried" in f])]


def _tell_trials(ours: list[Fact]) -> list[str]:
    """What trials add to the time of the defaults."""
    tried, whole = (sum(f[what] for f in ours) for what in ("tried", "seconds"))
    told = f"Trials of single pieces took {tried:.0f} of onnxproof's {whole:.0f} s: with them it takes {whole / max(whole - tried, 1e-9):.2f} times as long."
    return ["", told] if ours else []


def _names_piece(fault: Fact, ours: Fact) -> bool:
    """Whether the first culprit is the planted node, one that the fault put in, or one that stands for the same line."""
    first = (ours.get("located") or [""])[0]
    return first == fault["culprit"] or first.startswith("fault_") or (fault["line"] or 0) == (ours.get("line") or -1)


def _located(faults: dict[str, Fact], answers: dict[tuple[str, str], Fact]) -> list[str]:
    """How often the first culprit is the right one, by node, module, line and stage; only what is known counts."""
    ours = {name: answers.get((name, "onnxproof")) or answers.get((name, BEST)) or {} for name in faults}
    asked = {
        "node": [(f["culprit"], (ours[n].get("located") or [None])[0]) for n, f in faults.items() if f["culprit"]],
        "node or piece": [(True, _names_piece(f, ours[n])) for n, f in faults.items() if f["culprit"]],
        "module": [(f["module"], ours[n].get("module")) for n, f in faults.items() if f.get("module")],
        "line": [(f["line"], ours[n].get("line")) for n, f in faults.items() if f.get("line")],
        "stage": [(f["stage"], ours[n].get("stage")) for n, f in faults.items() if f.get("stage")],
    }
    lines = ["| onnxproof's first culprit | right |", "|---|---|"]
    lines += [
        f"| {what} | {_share(sum(a == b for a, b in pairs), len(pairs))} |" for what, pairs in asked.items() if pairs
    ]
    wrong = [
        f"`{n.removeprefix('fault:')}` ({f['stage']}, not {ours[n].get('stage')})"
        for n, f in faults.items()
        if f.get("stage") and ours[n].get("stage") != f["stage"]
    ]
    nodes = [
        f"`{n.removeprefix('fault:')}`" for n, f in faults.items() if f["culprit"] and not _names_piece(f, ours[n])
    ]
    lines += [
        "",
        "*Node or piece*: the planted node, one that the fault put in, or one that stands for the same line of the module.",
    ]
    lines += ["No peer in the table names a node, a module or a line."]
    lines += [f"Neither node nor piece: {', '.join(nodes)}."] if nodes else []
    lines += [f"Another stage: {', '.join(wrong)}."] if wrong else []
    return lines


def _wrong(
    faults: dict[str, Fact], zoo: dict[str, Fact], answers: dict[tuple[str, str], Fact], facts: list[Fact]
) -> list[str]:
    rows = []
    late = [n.removeprefix("fault:") for n in faults if not _alarmed(answers.get((n, "onnxproof")))]
    for name, fact in faults.items():
        if not _alarmed(answers.get((name, "onnxproof"))) and not _alarmed(answers.get((name, BEST))):
            rows.append(
                f"- missed: `{name.removeprefix('fault:')}` ({fact['cls']}): {REASONS.get(name, 'no reason known')}"
            )
            late.remove(name.removeprefix("fault:"))
    if late:
        rows.append(f"- missed by the defaults and found by the search: {', '.join(f'`{name}`' for name in late)}")
    for name in zoo:
        for verifier in ("onnxproof", BEST):
            answer = answers.get((name, verifier))
            if _alarmed(answer):
                why = (answer or {}).get("why") or (answer or {}).get("state")
                rows.append(f"- false alarm of {verifier}: `{name.removeprefix('zoo:')}`: {why}")
    for fact in facts:
        if fact["verifier"] in ("onnxproof", BEST) and fact["state"] in ("raised", "died"):
            rows.append(f"- {fact['state']}: `{fact['item']}`: {fact.get('why', '')}")
        if fact["verifier"] == "build" and (fact["state"] in ("failed", "died") or fact.get("problem")):
            rows.append(f"- not exported: `{fact['item']}`: {fact.get('why') or fact.get('problem') or fact['state']}")
    return rows or ["Nothing."]
