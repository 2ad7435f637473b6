"""Every failure and its remedy through the command line, and what `--heal` does about silent ones.

python -m benchmarks.failures.run      writes docs/failures.md and docs/failures.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.failures import silent
from benchmarks.failures.agreement import agreement, section
from benchmarks.failures.corpus import FAILURES, Failure
from benchmarks.failures.public import reports, table

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
BUDGET = "15s"


def prove(target: str, *options: str) -> dict[str, Any]:
    """One run of the command line; its proof."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "onnxproof",
            "prove",
            target,
            "--budget",
            BUDGET,
            "--json",
            "-",
            "--out",
            folder,
        ]
        result = subprocess.run(
            [*command, *options], capture_output=True, text=True, env=os.environ, cwd=folder, check=False
        )
    if result.returncode not in (0, 1):
        return {"verdict": "error", "findings": [], "error": result.stderr[-400:]}
    proof: dict[str, Any] = json.loads(result.stdout)
    return proof


def codes(proof: dict[str, Any]) -> list[str]:
    """The codes of a proof, the gravest first."""
    return list(dict.fromkeys(finding["code"] for finding in proof["findings"]))


def told(failure: Failure) -> dict[str, Any]:
    """What the failing model is told, and whether the remedy passes."""
    target = f"{HERE / 'models.py'}:{failure.name}"
    before = prove(target, *failure.options)
    after = prove(target, *failure.remedied_with) if failure.remedied_with is not None else prove(f"{target}_remedied")
    finding = next((f for f in before["findings"] if f["code"] == failure.code), None)
    line = (finding or {}).get("where", {}).get("line")
    right = failure.code in codes(before) if failure.code else before["verdict"] == "ship"
    return {
        "name": failure.name,
        "options": list(failure.options),
        "fragment": failure.fragment,
        "expected": failure.code,
        "codes": codes(before),
        "right": right,
        "line": line,
        "message": (finding or {}).get("message", ""),
        "remedy": failure.remedy,
        "remedied": after["verdict"],
        "works": after["verdict"] == "ship",
    }


def healed(name: str) -> dict[str, Any]:
    """What is found about a silent fault, and what heals it."""
    proof = prove(f"{HERE / 'silent.py'}:{name}", "--heal", *silent.OPTIONS.get(name, ()))
    healing = proof.get("healing") or {}
    before = healing.get("before") or next((f for f in proof["findings"] if f["severity"] != "note"), {})
    verdict = next((f["message"] for f in proof["findings"] if f["code"] == "OX009"), "")
    return {
        "name": name,
        "code": before.get("code"),
        "stage": before.get("stage"),
        "healed": bool(healing.get("healed")),
        "how": healing.get("change") or verdict or "nothing to heal",
        "tried": len(healing.get("tried", [])),
        "cost": healing.get("cost"),
        "verdict": proof["verdict"],
    }


def lint_large() -> dict[str, Any]:
    """Seconds that `lint` takes for a file of 100 MB, and those of merely starting the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        rng = np.random.default_rng(0)
        names = [f"w{i}" for i in range(25)]
        stored = [numpy_helper.from_array(rng.normal(size=(1000, 1000)).astype(np.float32), name) for name in names]
        values = ["x", *(f"v{i}" for i in range(25))]
        nodes = [helper.make_node("MatMul", [values[i], names[i]], [values[i + 1]]) for i in range(25)]
        ends = [helper.make_tensor_value_info(name, 1, ("batch", 1000)) for name in (values[0], values[-1])]
        graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], stored)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        seconds = [_timed("lint", str(path)), _timed("--version")]
        return {"megabytes": path.stat().st_size / 1e6, "seconds": seconds[0], "start": seconds[1]}


def _timed(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "onnxproof", *arguments], capture_output=True, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Run everything, or what is named, two at a time; a row is written as soon as it is known."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="models to run again; the others stay as they were measured")
    parser.add_argument("--missing", action="store_true", help="only models that have no row yet")
    asked = parser.parse_args()
    file = DOCS / "failures.json"
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    rows = {_key(row): row for row in result.get("failures", ())}
    seen = {row["name"]: row for row in result.get("silent", ())}
    lock = threading.Lock()

    def wanted(name: str, known: bool) -> bool:
        return name in asked.names if asked.names else not (asked.missing and known)

    def write() -> None:
        done = {
            "failures": [
                rows[key] for f in FAILURES if (key := _key({"name": f.name, "options": list(f.options)})) in rows
            ],
            "silent": [seen[name] for name in silent_models() if name in seen],
            "reports": reports(),
            "lint": result["lint"],
            "agreement": result["agreement"],
        }
        done = json.loads(json.dumps(done).replace(f"{DOCS.parent}{os.sep}", ""))
        file.write_text(json.dumps(done, indent=1), encoding="utf-8")
        (DOCS / "failures.md").write_text(page(done), encoding="utf-8")

    def fail(failure: Failure) -> None:
        row = told(failure)
        with lock:
            rows[_key(row)] = row
            write()

    def heal(name: str) -> None:
        row = healed(name)
        with lock:
            seen[name] = row
            write()

    if (not asked.names and not asked.missing) or "lint" not in result:
        result["lint"] = lint_large()
    if (not asked.names and not asked.missing) or "agreement" not in result:
        result["agreement"] = agreement()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(heal, [name for name in silent_models() if wanted(name, name in seen)]))
        todo = [f for f in FAILURES if wanted(f.name, _key({"name": f.name, "options": list(f.options)}) in rows)]
        list(pool.map(fail, todo))
    write()
    wrong = [row["name"] for row in rows.values() if not (row["right"] and row["works"])]
    print(f"{len(rows) - len(wrong)} of {len(rows)} failures told and remedied; not: {', '.join(wrong) or 'none'}")


def silent_models() -> list[str]:
    """The names of the models that are exported wrongly without a word."""
    made = [name for name, value in vars(silent).items() if getattr(value, "__module__", "") == silent.__name__]
    return [name for name in made if name[0].islower() and callable(getattr(silent, name))]


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["name"], *row["options"])


def page(result: dict[str, Any]) -> str:
    """The numbers as a page."""
    failures, silents = result["failures"], result["silent"]
    told_right = sum(row["right"] for row in failures)
    works = sum(row["works"] for row in failures)
    lines = [
        "# Failures and remedies",
        "",
        f"Written by `make failures`: {len(failures)} of the {len(FAILURES)} models of `benchmarks/failures` through `onnxproof prove`, before and after its "
        "remedy. Every rewritten model is also proved by `tests/test_remedies.py`.",
        "",
        f"{told_right} of {len(failures)} failing models get the expected code, {works} of {len(failures)} remedies pass (verdict SHIP).",
        "",
        "| model | what torch or onnxruntime says | code | line known | remedy | after it |",
        "|---|---|---|---|---|---|",
    ]
    for row in failures:
        name = " ".join([row["name"], *row["options"]])
        code = (
            (row["expected"] or "passes")
            if row["right"]
            else f"**{', '.join(row['codes'][:3])}** (expected {row['expected']})"
        )
        after = row["remedied"].upper() if row["works"] else f"**{row['remedied'].upper()}**"
        lines.append(
            f"| {name} | `{row['fragment'].replace('|', '/')}` | {code} | {'yes' if row['line'] else '–'} | {row['remedy'].replace('|', '&#124;')} | {after} |"
        )
    healed_count = sum(row["healed"] for row in silents)
    lines += [
        "",
        "## Silent faults and `--heal`",
        "",
        f"{healed_count} of {len(silents)} are healed: another setting was found and verified from scratch.",
        "",
        "| model | finding | stage | healed by, or what has to change | tried | latency | size |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in silents:
        cost = row["cost"] or {}
        latency, size = (f"{cost[key]:.2f}×" if cost.get(key) else "–" for key in ("latency_ratio", "size_ratio"))
        how = row["how"].split("/")[-1] if row["how"].startswith("/") else row["how"]
        lines.append(
            f"| {row['name']} | {row['code'] or '–'} | {row['stage'] or '–'} | {how} | {row['tried']} | {latency} | {size} |"
        )
    lines += [
        "",
        "## Public reports",
        "",
        "Error messages of public issues about export, load and run, in samples taken one after the other. "
        "Each was taken without looking at the patterns, and they were extended after it was counted: *at first sight* are those counts, "
        "*now* is with the patterns of today. From sample 5 on the right code was written beside each report before the count; "
        "*right* and *wrong* are measured against it, and *says too little* are reports of which a human would say no more than that it failed.",
        "",
        *table(result["reports"]),
    ]
    large = result["lint"]
    lines += [
        "",
        "## Lint of a large file",
        "",
        f"`onnxproof lint` of a file of {large['megabytes']:.0f} MB: {large['seconds']:.1f} s, without a session ({large['start']:.1f} s to start the command).",
        "",
        *section(result["agreement"]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
