"""docs/atlas.json, docs/atlas.md, the scripts in docs/atlas/ and what the lint reads: all of it from the rows of a run."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.atlas.differences import (
    compare_dtypes,
    compare_opsets,
    count_statuses,
    find_dtypes,
    group_differences,
    group_refusals,
    list_operations,
    pick_for_lint,
    tell_opsets,
)
from benchmarks.atlas.measure import SETTLED
from benchmarks.atlas.rows import Row
from benchmarks.atlas.run import PASSES, check_sharing, list_combinations, list_supported, read_pass
from benchmarks.atlas.samples import UNFAIR
from benchmarks.atlas.scripts import shows, write_script
from benchmarks.forked import LONGEST
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
memory that nobody wrote to are left out, and so are samples of complex, sparse or quantised tensors and of more than 2000 elements. Where the file of all samples does not
export, the first three are exported one by one; where onnxruntime refuses that file or fails on it, it is not known which of the samples would have agreed.
"""
WORDS = {
    "agrees": "agree", "differs": "differ", "not exported": "do not export", "not loaded": "onnxruntime refuses the file", "not run": "onnxruntime fails on every case",
    "random": "random", "no samples": "no such sample", "crash": "the process died", "hang": f"no answer in {LONGEST:.0f} s", "our error": "our own error",
}  # fmt: skip


def make_atlas(rows: dict[str, Row]) -> dict[str, Any]:
    """Everything that the pages need."""
    packages = ("torch", "onnx", "onnxruntime", "onnxscript", "numpy")
    return {
        "versions": {name: re.sub(r"\+.*", "", version(name)) for name in packages},
        "passes": {name: _count_measured(name, rows) for name in PASSES},
        "unsupported": _count_unmeasured(),
        "cases": [sum(row.get(name, 0) for row in rows.values()) for name in ("cases", "judged")],
        "counts": count_statuses(rows.values()),
        "by dtype": compare_dtypes(rows.values()),
        "by opset": compare_opsets(rows.values()),
        "differences": group_differences(rows.values()),
        "refusals": group_refusals(rows.values()),
        "operations": list_operations(rows.values()),
        "agreeing": _list_agreeing(rows),
    }


def _count_unmeasured() -> dict[str, int]:
    """Dtypes that no pass is of → operations that torch has samples of in them."""
    planned = {dtype for name in PASSES for dtype in read_pass(name)[1]}
    return dict(sorted(Counter(d for dtypes in list_supported().values() for d in dtypes if d not in planned).items()))


def _count_measured(name: str, rows: dict[str, Row]) -> list[int]:
    """How many combinations of a pass were measured, and how many there are."""
    every = [one.key for one in list_combinations(name, rows)]
    return [sum(key in rows for key in every), len(every)]


def write_all(rows: dict[str, Row], minutes: float = 1e9) -> None:
    """Everything that is made of the rows; scripts for as many differences as the time allows, those on fair values first."""
    atlas = make_atlas(rows) | {"sharing": check_sharing()}
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
        if (one["profile"] not in UNFAIR) == entry["fair"] and one["aten"] and one["level"] == entry["level"]
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
    cases, judged = atlas["cases"]
    same, compared = atlas["sharing"]
    lines = [HEAD, f"Measured with {versions}, on one x86-64 CPU.", ""]
    lines += [
        "What one operation does in one dtype is measured together. The newer exporter captures and decomposes it once for all opsets; translation, conversion and "
        f"optimisation are done for each: {same} of {compared} files that were also exported without that, as a check, are the same byte for byte. Every file is run on every "
        f"kind of values ({cases:,} cases). An answer that is, bit for bit, one that was judged before on the same values has that judgement; {judged:,} were judged.",
        "",
        f"## What was run: {total:,} combinations of {len(atlas['operations'])} operations",
        "",
        "At the default opset:",
        "",
        *_render_counts(atlas["counts"]),
        "",
        *_render_passes(atlas["passes"], atlas["unsupported"]),
        "",
        "## What depends on the dtype",
        "",
        *_render_by_dtype(atlas["by dtype"]),
        "",
        "## What depends on the opset",
        "",
        *_render_by_opset(atlas["by opset"]),
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
        "Measured in the run, and not reduced to a script: its tensors are long, its dtype is none of numpy's, its call cannot be written in one expression, or the script's plain "
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
        "Operations that agreed in every dtype and exporter in which they exported at the default opset, and that ran there:",
        "",
        ", ".join(f"`{op}`" for op in atlas["agreeing"]) + ".",
    ]
    return "\n".join(lines) + "\n"


def _render_counts(counts: dict[str, dict[str, int]]) -> list[str]:
    counts = {key.removesuffix("|default"): one for key, one in counts.items() if key.endswith("|default")}
    kinds = [kind for kind in WORDS if any(kind in one for one in counts.values())]
    lines = [f"| exporter | dtype | {' | '.join(WORDS[k] for k in kinds)} |", f"|---|---|{'---|' * len(kinds)}"]
    for key, one in sorted(counts.items(), key=lambda item: item[0].split("|")[0]):
        lines.append(f"| {' | '.join(key.split('|'))} | {' | '.join(str(one.get(kind, 0)) for kind in kinds)} |")
    return lines


def _render_passes(passes: dict[str, list[int]], unsupported: dict[str, int]) -> list[str]:
    """What of the plan was measured, and what was not."""
    lines = ["| exporter | dtypes | opsets | measured | of |", "|---|---|---|---|---|"]
    for name, (done, total) in passes.items():
        exporter, dtypes, opsets = read_pass(name)
        lines.append(f"| {exporter} | {', '.join(dtypes)} | {tell_opsets(opsets)} | {done:,} | {total:,} |")
    missing = ", ".join(f"{dtype} ({count} operations)" for dtype, count in unsupported.items())
    return [
        *lines,
        "",
        f"What is not measured is not known: `make atlas` goes on with it. An operation that is random or has no sample at the default opset is not tried at others. "
        f"In no pass, since ONNX Runtime takes no such inputs: {missing}.",
    ]


def _render_by_dtype(table: dict[str, Row]) -> list[str]:
    lines = [
        "Operations that differ on fair values at the default opset, and those of them that do not differ in float32:",
        "",
        "| exporter | dtype | differ | not in float32 |",
        "|---|---|---|---|",
    ]
    for key, one in sorted(table.items(), key=lambda item: item[0].split("|")[0]):
        exporter, dtype = key.split("|")
        lines.append(f"| {exporter} | {dtype} | {one['differ']} | {', '.join(f'`{cause}`' for cause in one['only'])} |")
    return lines


def _render_by_opset(table: dict[str, Row]) -> list[str]:
    kinds = [kind for kind in WORDS if kind not in SETTLED and any(kind in one["counts"] for one in table.values())]
    lines = [
        "All dtypes that were measured there together. A difference is held against the default opset where the operation runs at both.",
        "",
        f"| exporter | opset | dtypes | {' | '.join(WORDS[kind] for kind in kinds)} | differs here, not at the default opset | differs there, not here |",
        f"|---|---|---|{'---|' * len(kinds)}---|---|",
    ]
    for key, one in table.items():
        exporter, opset = key.split("|")
        counts = " | ".join(str(one["counts"].get(kind, 0)) for kind in kinds)
        lines.append(
            f"| {exporter} | {opset} | {len(one['dtypes'])} | {counts} | {_tell_causes(one['only here'])} | {_tell_causes(one['not here'])} |"
        )
    return lines


def _tell_causes(causes: dict[str, list[str]]) -> str:
    return ", ".join(f"`{cause}` ({', '.join(dtypes)})" for cause, dtypes in causes.items())


def _render_differences(entries: list[Row], title: str) -> list[str]:
    return [f"### {title}", "", *_render_table(entries), ""] if entries else []


def _render_table(entries: list[Row]) -> list[str]:
    lines = [
        "| operation | exporter | dtypes | opsets | becomes | onnxruntime | script |",
        "|---|---|---|---|---|---|---|",
    ]
    for e in entries:
        script = f"[{e['script']}](atlas/{e['script']})" if e["script"] else ""
        opsets = tell_opsets(e["opsets"])
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


def _list_agreeing(rows: dict[str, Row]) -> list[str]:
    """Operations that agree wherever they export at the default opset."""
    kinds = defaultdict[str, set[str]](set)
    for row in rows.values():
        if row["opset"] is None:
            kinds[row["op"]].add(row["status"])
    bad = {"differs", "not run", "not loaded", "crash", "hang", "our error"}
    return sorted(op for op, seen in kinds.items() if "agrees" in seen and not bad & seen)


def check_scripts() -> list[str]:
    """Scripts that do not show their difference any more."""
    return [file.name for file in sorted(SCRIPTS.glob("*.py")) if not shows(file)]
