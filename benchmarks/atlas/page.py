"""docs/atlas.json, docs/atlas.md, the scripts in docs/atlas/ and what the lint reads: all of it from the rows of a run."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.atlas.child import remember_tables
from benchmarks.atlas.differences import (
    count_statuses,
    find_dtypes,
    group_differences,
    group_refusals,
    list_operations,
    pick_for_lint,
)
from benchmarks.atlas.measure import Row
from benchmarks.atlas.run import DTYPES, PASSES, list_combinations
from benchmarks.atlas.samples import UNFAIR
from benchmarks.atlas.scripts import shows, write_script
from onnxproof.findings import look_up

ROOT = Path(__file__).parents[2]
DOCS, SCRIPTS = ROOT / "docs", ROOT / "docs" / "atlas"
LINT = ROOT / "src" / "onnxproof" / "lints" / "atlas.json"
HEAD = """# The atlas

Every operation that torch has samples of in its own tests (`torch.testing._internal.common_methods_invocations.op_db`), exported and run: which ones export, which agree,
and which part on which values. Made by `make atlas`; the numbers are in [atlas.json](atlas.json).

Up to six samples of an operation, chosen to differ in rank, in empty and single dimensions and in their arguments, make one module and one file. It is run by onnxruntime,
with all optimisations and with none, on the samples' own values and on edges: halves, equal values, zeros of either sign, small, tiny, moderate (up to 1000), large, the
limits of the dtype, infinities and NaN; integers small, equal, in hundreds, wide and at the ends of their range. Answers are judged as `prove` judges them: the error
against the same module in float64, what legal rounding of the operation explains, dtype and shape. Equal values are not given to operations that promise no order among
them (sort, topk, median, mode). Where torch itself refuses some values, fewer inputs get them, then one call at a time. Operations that draw random numbers or return
memory that nobody wrote to are left out, and so are samples of complex, sparse or quantised tensors and of more than 2000 elements.
"""
WORDS = {
    "agrees": "agree", "differs": "differ", "not exported": "do not export", "not loaded": "onnxruntime refuses the file", "not run": "onnxruntime fails on every case",
    "random": "random", "no samples": "no such sample", "crash": "the process died", "hangs": "no answer in 240 s", "our error": "our own error",
}  # fmt: skip


def make_atlas(rows: dict[str, Row]) -> dict[str, Any]:
    """Everything that the pages need."""
    packages = ("torch", "onnx", "onnxruntime", "onnxscript", "numpy")
    return {
        "versions": {name: re.sub(r"\+.*", "", version(name)) for name in packages},
        "passes": {name: _count_measured(name, rows) for name in PASSES},
        "counts": count_statuses(rows.values()),
        "differences": group_differences(rows.values()),
        "refusals": group_refusals(rows.values()),
        "operations": list_operations(rows.values()),
    }


def _count_measured(name: str, rows: dict[str, Row]) -> list[int]:
    """How many combinations of a pass were measured, and how many there are."""
    every = [one.key for one in list_combinations(name, rows)]
    return [sum(key in rows for key in every), len(every)]


def write_all(rows: dict[str, Row], minutes: float = 1e9) -> None:
    """Everything that is made of the rows; scripts for as many differences as the time allows, those on fair values first."""
    remember_tables()
    atlas = make_atlas(rows)
    SCRIPTS.mkdir(exist_ok=True)
    kept, ends = set[str](), time.monotonic() + 60 * minutes
    # One for every operation first, by the newer exporter where it differs there.
    for entry in sorted(atlas["differences"], key=lambda e: (not e["fair"], e["exporter"], e["cause"])):
        run = time.monotonic() < ends
        entry["script"] = _make_script(entry, rows[entry["key"]], kept, atlas["versions"], run=run)
        entry["called"] = find_dtypes(entry) if entry["fair"] and entry["script"] else {}
        if entry["script"]:
            kept.add(entry["script"])
    for file in SCRIPTS.glob("*.py"):
        if file.name not in kept:
            file.unlink()
    (DOCS / "atlas.json").write_text(json.dumps(atlas, indent=1) + "\n", encoding="utf-8")
    LINT.write_text(json.dumps(pick_for_lint(atlas), indent=1) + "\n", encoding="utf-8")
    (DOCS / "atlas.md").write_text(render(atlas), encoding="utf-8")


def _make_script(entry: Row, row: Row, kept: set[str], versions: dict[str, str], *, run: bool) -> str | None:
    found = [
        one for one in row["found"]
        if (one["profile"] not in UNFAIR) == entry["fair"] and one["inputs"] is not None and one["aten"] and one["level"] == entry["level"]
    ]  # fmt: skip
    found.sort(key=lambda one: (one["profile"] != entry["profile"], one["sample"] != entry["sample"]))
    title = f"{entry['cause']}, {entry['dtype']}, {entry['exporter']}: {_tell(entry)} (torch {versions['torch']}, onnxruntime {versions['onnxruntime']})."
    for one in found[:3]:
        made = write_script({**entry, "opset": row["opset"]}, one, SCRIPTS, title, run=run)
        if made is not None and made not in kept:
            return made
    return None


def _tell(entry: Row) -> str:
    on = f"on {' and '.join(_short(v) for v in entry['given'])}" if entry["given"] else f"on {entry['profile']} values"
    if entry["expected"] is None:
        return f"{entry['kind']} {on}"
    return f"{_short(entry['got'])} where PyTorch gives {_short(entry['expected'])}, {on}"


def _short(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def render(atlas: dict[str, Any]) -> str:
    """The page."""
    versions = ", ".join(f"{name} {number}" for name, number in atlas["versions"].items())
    total = sum(sum(counts.values()) for counts in atlas["counts"].values())
    lines = [HEAD, f"Measured with {versions}, on one x86-64 CPU.", ""]
    lines += [
        f"## What was run: {total:,} combinations of {len(atlas['operations'])} operations",
        "",
        *_render_counts(atlas["counts"]),
        "",
        *_render_passes(atlas["passes"]),
        "",
    ]
    fair = [e for e in atlas["differences"] if e["fair"]]
    shown = [e for e in atlas["differences"] if e["script"]]
    lines += [
        f"## {len(shown)} differences that a script shows, {len({e['cause'] for e in shown})} operations",
        "",
        "Each by the operation of torch that the call consists of. The script needs torch, onnx and onnxruntime only, prints both answers and ends with 1; "
        "each was run once in a process of its own. *Fair* values are of a size from 1e-8 to 1000, zero, or integers.",
        "",
        *_render_differences([e for e in shown if e["fair"]], "On fair values"),
        *_render_differences([e for e in shown if not e["fair"]], "On large, infinite or NaN values only"),
    ]
    rest = [e for e in atlas["differences"] if not e["script"]]
    lines += [
        f"## {len(rest)} more without a script",
        "",
        "Measured in the run, and not reduced to a script: its tensors are long, its call cannot be written in one expression, or the script's plain "
        f"tolerance does not show it. {len(fair)} of all differences are on fair values.",
        "",
        *_render_table(rest),
        "",
        "## What does not export",
        "",
        *_render_refusals(atlas["refusals"]),
        "",
        "## What agrees",
        "",
        "Operations that agreed in every dtype, exporter and opset in which they exported and ran:",
        "",
        ", ".join(f"`{op}`" for op in _list_agreeing(atlas["operations"])) + ".",
    ]
    return "\n".join(lines) + "\n"


def _render_counts(counts: dict[str, dict[str, int]]) -> list[str]:
    kinds = [kind for kind in WORDS if any(kind in one for one in counts.values())]
    lines = [
        f"| exporter | dtype | opset | {' | '.join(WORDS[k] for k in kinds)} |",
        f"|---|---|---|{'---|' * len(kinds)}",
    ]
    for key, one in counts.items():
        lines.append(f"| {' | '.join(key.split('|'))} | {' | '.join(str(one.get(kind, 0)) for kind in kinds)} |")
    return lines


def _render_passes(passes: dict[str, list[int]]) -> list[str]:
    """What of the plan was measured, and what was not."""
    lines = ["| pass | what | measured | of |", "|---|---|---|---|"]
    for name, (done, total) in passes.items():
        exporter = "torchscript" if name.startswith("older") else "dynamo"
        kind = name.removeprefix("older").strip() or "base"
        what = "float32 at every other opset" if kind == "opsets" else f"{', '.join(DTYPES[kind])} at the default opset"
        lines.append(f"| {name} | {exporter}, {what} | {done} | {total} |")
    return [
        *lines,
        "",
        "What is not measured is not known: `make atlas` goes on with it. An operation that does not export at the default opset is not tried at others.",
    ]


def _render_differences(entries: list[Row], title: str) -> list[str]:
    return [f"### {title}", "", *_render_table(entries), ""] if entries else []


def _render_table(entries: list[Row]) -> list[str]:
    lines = [
        "| operation | exporter | dtypes | opsets | becomes | onnxruntime | script |",
        "|---|---|---|---|---|---|---|",
    ]
    for e in entries:
        script = f"[{e['script']}](atlas/{e['script']})" if e["script"] else ""
        opsets = ", ".join(map(str, e["opsets"]))
        lines.append(
            f"| `{e['cause']}` | {e['exporter']} | {', '.join(e['dtypes'])} | {opsets} | {', '.join(e['nodes'][:5])} | {_tell(e).replace('|', '/')} | {script} |"
        )
    return lines


def _render_refusals(refusals: dict[str, Any]) -> list[str]:
    lines = ["| diagnosis | for example | operations |", "|---|---|---|"]
    for code, entry in sorted(refusals.items(), key=lambda item: -sum(map(len, item[1]["operations"].values()))):
        ops = "; ".join(
            f"{exporter} ({len(names)}): {', '.join(names)}" for exporter, names in entry["operations"].items()
        )
        lines.append(f"| {code}: {look_up(code).title} | {entry['example'].replace('|', '/')[:120]} | {ops} |")
    return lines


def _list_agreeing(operations: dict[str, dict[str, str]]) -> list[str]:
    bad = {"differs", "not run", "not loaded", "crash", "hangs", "our error"}
    return [
        op
        for op, seen in operations.items()
        if "agrees" in (kinds := Counter(seen.values())) and not bad & kinds.keys()
    ]


def check_scripts() -> list[str]:
    """Scripts that do not show their difference any more."""
    return [file.name for file in sorted(SCRIPTS.glob("*.py")) if not shows(file)]
