"""The whole database, resumable: one line for each operation, dtype, exporter and opset, appended as it comes."""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from benchmarks.atlas.measure import Combination, Row
from benchmarks.atlas.samples import load_database, name_operation

RESULTS = Path(__file__).parent / "results.jsonl"
# Seconds after which a combination counts as hanging, and combinations after which a child has grown enough.
PATIENCE, MOST = 240.0, 150
DTYPES = {
    "base": ("float32", "int64", "bool"),
    "more": ("float16", "bfloat16", "int32"),
    "rest": ("float64", "int16", "int8", "uint8"),
}
# The newest opset that each exporter writes.
OPSETS = {"dynamo": range(17, onnx.defs.onnx_opset_version() + 1), "torchscript": range(17, 21)}
PASSES = ("base", "older", "more", "opsets", "older more", "rest", "older opsets", "older rest")
# What is the same at every opset, or not worth another look.
SETTLED = ("random", "no samples", "not exported", "hangs")


def list_combinations(name: str, known: dict[str, Row]) -> Iterator[Combination]:
    """What a pass measures."""
    exporter = "torchscript" if name.startswith("older") else "dynamo"
    kind = name.removeprefix("older").strip() or "base"
    supported = {
        name_operation(op): {str(d).removeprefix("torch.") for d in op.supported_dtypes("cpu")}
        for op in load_database()
    }
    if kind != "opsets":
        for dtype in DTYPES[kind]:
            yield from (Combination(op, dtype, exporter, None) for op, dtypes in supported.items() if dtype in dtypes)
        return
    ends = [OPSETS[exporter][0], OPSETS[exporter][-1]]
    for opset in dict.fromkeys([*ends, *OPSETS[exporter]]):
        for op, dtypes in supported.items():
            before = known.get(Combination(op, "float32", exporter, None).key)
            if (
                "float32" in dtypes
                and before is not None
                and before["status"] not in SETTLED
                and before.get("written") != opset
            ):
                yield Combination(op, "float32", exporter, opset)


def read_results() -> dict[str, Row]:
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    return {row["key"]: row for row in rows}


class Child:
    """A process that measures, and is let go of when it hangs or dies."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.atlas.child"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.done = 0
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def ask(self, one: Combination) -> Row:
        assert self.process.stdin is not None
        asked: dict[str, Any] = {"op": one.op, "dtype": one.dtype, "exporter": one.exporter, "opset": one.opset}
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            line = self._lines.get(timeout=PATIENCE)
        except (queue.Empty, BrokenPipeError):
            line = "hangs" if self.process.poll() is None else ""
        self.done += 1
        if line and line != "hangs":
            row: Row = json.loads(line)
            return row
        status = "hangs" if line else "crash"
        self.close()
        return {
            "key": one.key,
            **asked,
            "status": status,
            "reason": f"signal {-(self.process.returncode or 0)}" if not line else "",
        }

    @property
    def usable(self) -> bool:
        return self.done < MOST and self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def measure_missing(passes: list[str], minutes: float) -> None:
    """Measure until all is there or the time is over."""
    ends, child = time.monotonic() + 60 * minutes, None
    try:
        for name in passes:
            known = read_results()
            missing = [one for one in list_combinations(name, known) if one.key not in known]
            print(f"{name}: {len(missing)} to do", flush=True)
            for number, one in enumerate(missing):
                if time.monotonic() > ends:
                    return
                if child is None or not child.usable:
                    if child is not None:
                        child.close()
                    child = Child()
                row = child.ask(one)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                if number % 100 == 0:
                    print(f"  {number}: {one.key} {row['status']}", flush=True)
    finally:
        if child is not None:
            child.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1e9, help="for measuring, and for scripts")
    parser.add_argument("--only", nargs="*", choices=(*PASSES, "page"), default=[*PASSES, "page"])
    asked = parser.parse_args()
    measure_missing([name for name in asked.only if name != "page"], asked.minutes)
    if "page" in asked.only:
        from benchmarks.atlas.page import write_all

        write_all(read_results(), asked.minutes)


if __name__ == "__main__":
    main()
