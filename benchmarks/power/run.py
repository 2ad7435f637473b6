"""Run every verifier on every item and write docs/power.md and docs/power.json.

python -m benchmarks.power.run            everything, about half an hour on two cores
python -m benchmarks.power.run --sample   a sample with onnxproof alone; fails on a miss or false alarm that is not in the baseline
python -m benchmarks.power.run --only onnxproof --items fault:a zoo:b
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.power.report import write

ROOT = Path(__file__).parents[2]
PER_ITEM = 240.0
"""Seconds without a word after which a worker is given up."""
SAMPLE = 50
"""Every how many-th item is in the sample."""
Fact = dict[str, Any]


class Worker:
    """A worker process and the pipe it answers on."""

    def __init__(self, verifiers: list[str]) -> None:
        self._read, write = os.pipe()
        env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.power.worker", str(write), *verifiers],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(write,),
            cwd=ROOT,
            env=env,
        )
        os.close(write)
        self._buffer = b""

    def facts(self, item: str) -> Iterator[Fact]:
        """Facts about one item; ends early where the worker dies or hangs."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{item}\n".encode())
        self._process.stdin.flush()
        while True:
            ready, _, _ = select.select([self._read], [], [], PER_ITEM)
            chunk = os.read(self._read, 1 << 16) if ready else b""
            if not chunk:
                self._process.kill()
                return
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            for line in lines:
                fact: Fact = json.loads(line)
                yield fact
                if fact["state"] == "done":
                    return

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)


def verify_all(items: list[str], verifiers: list[str], parallel: int) -> list[Fact]:
    """All facts, by workers that are replaced when they die."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    facts: list[Fact] = []
    threads = [threading.Thread(target=_serve, args=(waiting, verifiers, facts, len(items))) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return facts


def _serve(waiting: queue.SimpleQueue[str], verifiers: list[str], facts: list[Fact], total: int) -> None:
    worker = Worker(verifiers)
    while True:
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            break
        last: Fact = {}
        for fact in worker.facts(item):
            last = fact
            if fact["state"] not in ("begin", "done"):
                facts.append(fact)
        if last.get("state") != "done":
            # The verifier at work is to blame; what comes after it for this item is lost.
            facts.append({"item": item, "verifier": last.get("verifier", "build"), "state": "died"})
            worker.stop()
            worker = Worker(verifiers)
        wrong = sorted(what for name, what in _wrong(facts) if name == item)
        print(f"{total - waiting.qsize()}/{total} {item} {' '.join(wrong)}", file=sys.stderr)
    worker.stop()


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--items", nargs="*")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--json", default=None)
    parser.add_argument(
        "--merge",
        nargs="+",
        help="files of --json whose answers take the place of the recorded ones of the same verifiers",
    )
    options = parser.parse_args()
    from benchmarks.power.items import names
    from benchmarks.power.verifiers import VERIFIERS

    if options.merge:
        write(merge([Path(file) for file in options.merge]), ROOT / "docs")
        return
    verifiers = options.only or (["onnxproof"] if options.sample else list(VERIFIERS))
    items = options.items or (names()[::SAMPLE] if options.sample else names())
    began = time.perf_counter()
    facts = verify_all(items, verifiers, options.parallel)
    record = {"verifiers": verifiers, "items": items, "seconds": time.perf_counter() - began, "facts": facts}
    if options.sample:
        sys.exit(_compare(facts))
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1), encoding="utf-8")
    elif options.items is None and options.only is None:
        write(record, ROOT / "docs")
    print(_summary(facts))


def merge(files: list[Path]) -> dict[str, Any]:
    """The recorded run with these answers in the place of its own: what one verifier says anew needs not be asked of all."""
    recorded = json.loads((ROOT / "docs" / "power.json").read_text(encoding="utf-8"))
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    newer = {(fact["item"], fact["verifier"]): fact for run in runs for fact in run["facts"]}
    anew = sorted({verifier for run in runs for verifier in run["verifiers"]})
    kept = [f for f in recorded["facts"] if f["verifier"] not in (*anew, "build") or (f["item"], "build") not in newer]
    kept = [f for f in kept if (f["item"], f["verifier"]) not in newer]
    items = list(dict.fromkeys([*recorded["items"], *(item for run in runs for item in run["items"])]))
    return {**recorded, "items": items, "anew": anew, "facts": [*kept, *newer.values()]}


def _wrong(facts: list[Fact]) -> set[tuple[str, str]]:
    """(item, what) where onnxproof missed a fault, accused a correct model, raised or died."""
    wrong = set()
    for fact in facts:
        if fact["verifier"] == "build" and fact["state"] in ("failed", "died"):
            wrong.add((fact["item"], "not built"))
        if fact["verifier"] != "onnxproof":
            continue
        if fact["state"] != "answered":
            wrong.add((fact["item"], fact["state"]))
        elif fact["alarm"] != fact["item"].startswith("fault:"):
            wrong.add((fact["item"], "missed" if fact["item"].startswith("fault:") else "false alarm"))
    return wrong


def _compare(facts: list[Fact]) -> int:
    """1 where something is wrong that was right in the recorded run."""
    recorded = json.loads((ROOT / "docs" / "power.json").read_text(encoding="utf-8"))["facts"]
    new = _wrong(facts) - _wrong(recorded)
    answered = sum(1 for fact in facts if fact["verifier"] == "onnxproof" and fact["state"] == "answered")
    for item, what in sorted(new):
        print(f"{item}: {what}, which it was not before")
    print(f"{answered - len(new)} passed, {len(new)} failed")
    return 1 if new or not answered else 0


def _summary(facts: list[Fact]) -> str:
    wrong = _wrong(facts)
    return "\n".join([*(f"{item}: {what}" for item, what in sorted(wrong)), f"{len(wrong)} wrong"])


if __name__ == "__main__":
    main()
