"""What happens when everything else fails: `python -m benchmarks.reliability PART …` adds a measurement, `page` writes docs/reliability.md.

    kills [COUNT] [SEED] [SCENARIOS]   runs that are ended at random moments, and resumed
    disk                               a disk that is full at every write, and for real
    deeds [NAMES]                      forwards that attack the process they run in
    mutants [COUNT] [SEED]             changed ONNX files, judged against onnxruntime's own answers
    readers [COUNT] [SEED] [KINDS]     broken files of every kind
    load [NAMES]                       much of everything
    same [COUNT] [SEED] [COMMANDS]     the same command under other circumstances: the same proof
    page                               the page

`make faults` runs all of them. Results are kept in docs/reliability.json, so that a long measurement can be made in slices.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

DOCS = Path(__file__).parents[2] / "docs"
STORE, PAGE = DOCS / "reliability.json", DOCS / "reliability.md"


def read_store() -> dict[str, Any]:
    return dict(msgspec.json.decode(STORE.read_bytes())) if STORE.is_file() else {}


def add(part: str, rows: list[Any]) -> None:
    """Keep some more results of a part."""
    store = read_store()
    store[part] = [*store.get(part, []), *rows]
    STORE.write_bytes(msgspec.json.format(msgspec.json.encode(store), indent=1))


def count_rows(rows: list[dict[str, Any]], *keys: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[key] for key in keys) for row in rows for _ in range(row.get("times", 1)))


def run_kills(count: int = 40, seed: int = 0, names: str = "") -> None:
    from benchmarks.reliability.kills import SCENARIOS, run_trials

    scenarios = names.split(",") if names else list(SCENARIOS)[:7]
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=False
    )
    for trial in run_trials(count, seed, scenarios):
        add("kills", [{**asdict(trial), "commit": told.stdout.strip()}])


def run_disk() -> None:
    from benchmarks.reliability.disk import COMMANDS, fill_every_write, fill_for_real

    for command in COMMANDS:
        add("full at one write", [asdict(one) for one in fill_every_write(command)])
    try:
        add("a small disk", [asdict(fill_for_real("wrong file", size)) for size in (4, 16, 40, 100)])
    except OSError:
        print("no right to mount a file system: a small disk was not tried")


def run_deeds(names: str = "") -> None:
    from benchmarks.reliability.deeds import run_all

    for one in run_all(names.split(",") if names else ()):
        print(one)
        add("deeds", [asdict(one)])


def run_mutants(count: int = 200, seed: int = 0) -> None:
    from benchmarks.mutants import run_in_processes

    results = run_in_processes(count, seed)
    for one in results:
        if one.fault or one.verdict == "bug":
            print(one)
    rows = Counter((one.oracle, one.verdict, one.fault) for one in results)
    add("mutants", [{"oracle": o, "verdict": v, "fault": f, "times": n} for (o, v, f), n in rows.items()])


def run_readers(count: int = 6250, seed: int = 0, kinds: str = "") -> None:
    from benchmarks import fuzz

    rows: Counter[tuple[str, str]] = Counter()
    for one in fuzz.run_in_processes(count, seed, kinds.split(",") if kinds else ()):
        end = one.bug if one.bug in ("crash", "hang") else "bug" if one.bug else "refused" if one.refused else "read"
        rows[one.kind, end] += 1
        if one.bug:
            print(fuzz.name_bug(one), one.bug, flush=True)
    add("readers", [{"kind": kind, "end": end, "times": n} for (kind, end), n in rows.items()])


def run_load(names: str = "") -> None:
    from benchmarks.reliability.load import LOADS, measure

    for name in names.split(";") if names else LOADS:
        add("load", [asdict(measure(name))])


def run_same(count: int = 10, seed: int = 0, names: str = "") -> None:
    from benchmarks.reliability.same import COMMANDS, run_all

    for one in run_all(count, seed, names.split(",") if names else list(COMMANDS)):
        print(f"{one.command}: {one.seconds:.0f} s{' loaded' * one.loaded} {list(one.different) or ''}", flush=True)
        add("same", [asdict(one)])


PARTS = {
    "kills": run_kills,
    "disk": run_disk,
    "deeds": run_deeds,
    "mutants": run_mutants,
    "readers": run_readers,
    "load": run_load,
    "same": run_same,
}


def main() -> None:
    """One part, with numbers and names as they are given; all of them and the page without any."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    part, *rest = [*sys.argv[1:], *[""] * (len(sys.argv) < 2)]
    if part in PARTS:
        began = time.perf_counter()
        PARTS[part](*(int(text) if text.isdigit() else text for text in rest))  # type: ignore[operator]
        print(f"{part}: {time.perf_counter() - began:.0f} s")
    elif not part:
        STORE.unlink(missing_ok=True)
        for name in PARTS:
            # In a process of its own: what one part loads must not be forked by another.
            command = [sys.executable, "-m", "benchmarks.reliability", name, *(["200"] if name == "kills" else [])]
            os.spawnve(os.P_WAIT, sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    if part in ("", "page"):
        from benchmarks.reliability.page import render

        PAGE.write_text(render(read_store()), encoding="utf-8")


if __name__ == "__main__":
    main()
