"""One million rows: memory, and throughput beside a bare `session.run` loop at the same batch.

    python -m benchmarks.evaluate [--rows 1000000]

Throughput: the ONNX side of the evaluation alone (reading the file, choosing and casting inputs, watching them, running the session, keeping
scores and labels) in one process per core with one thread each, which is what the command does with a million rows, and in one process
with all threads. Beside them: `session.run` on slices of an array that is in memory already, with all threads in one process and with one thread in
as many processes, and a loop that reads each batch from a raw file. All see every row four times, in turns of a tenth of the rows, each after a few batches that are
not counted, so that what else the machine does falls on all. Processes have started before. PyTorch's forwards are not part of any: their time is told beside.

Memory: the command line's own run (`onnxproof evaluate`, both sides, metrics and intervals included) in a process of its
own, for a tenth of the rows and for all of them; the peak is of the largest process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

FEATURES, BATCH, WINDOWS, PASSES = 64, 4096, 10, 4
NUMBERS = Path(__file__).with_name("evaluate.json")
REPORT = Path(__file__).parents[1] / "docs" / "evaluate.md"


def model() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """TARGET: a small scorer for tables."""
    torch.manual_seed(0)
    layers = (nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    return nn.Sequential(*layers).eval(), (torch.randn(4, FEATURES),)


def write_rows(path: Path, rows: int) -> None:
    """Random rows, and labels that the first column decides."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    schema = pa.schema([("x", pa.list_(pa.float32(), FEATURES)), ("labels", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 50_000):
            x = generator.standard_normal((min(50_000, rows - start), FEATURES), dtype=np.float32)
            column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), FEATURES)
            writer.write_table(pa.table([column, pa.array((x[:, 0] > 0).astype(np.int64))], schema=schema))


class Lane:
    """What one process does: the same rows through a bare loop, and through the ONNX side of the evaluation."""

    def __init__(self, folder: Path, threads: int | None) -> None:
        from onnxproof.artifact.file import read_artifact
        from onnxproof.candidates.exchange import encode_settings
        from onnxproof.candidates.serve import make_session
        from onnxproof.data.opening import open_source
        from onnxproof.quality.engine import Engine
        from onnxproof.request.evaluation import EvaluateSettings
        from onnxproof.request.session import SessionSettings
        from onnxproof.subject.assembly import make_subject

        data, artifact = str(folder / "rows.npy"), read_artifact(folder / "model.onnx")
        settings = EvaluateSettings(data, labels=str(folder / "labels.npy"), batch_size=BATCH)
        session = SessionSettings(threads=threads)
        self.engine = Engine(make_subject(*model()), artifact, session, settings, sides=("candidate",))
        self.source = self.engine.open(open_source(data))
        self.plan = self.engine.plan(self.source, self.source.all_labels())
        self.session = make_session(artifact.path, encode_settings(session))
        self.name = self.session.get_inputs()[0].name
        self.plain = folder / "rows.bin"
        self.rows = np.fromfile(self.plain, np.float32).reshape(-1, FEATURES)

    def bare(self, start: int, stop: int) -> None:
        """`session.run` on slices of an array in memory."""
        for first in range(start, stop, BATCH):
            self.session.run(None, {self.name: self.rows[first : min(first + BATCH, stop)]})

    def reading(self, start: int, stop: int) -> None:
        """`session.run` on batches that are read from a raw file."""
        for first in range(start, stop, BATCH):
            count = min(first + BATCH, stop) - first
            batch = np.fromfile(self.plain, np.float32, count * FEATURES, offset=first * FEATURES * 4)
            self.session.run(None, {self.name: batch.reshape(count, FEATURES)})

    def ours(self, start: int, stop: int) -> None:
        """The evaluation's own way."""
        from onnxproof.quality.shardrun import ShardRun

        batches = self.source.batches(start, BATCH, stop)
        shard = ShardRun(self.engine, self.plan, start).run(batches, None, lambda count: None)
        assert shard.rows == stop - start


def serve_lane(folder: Path, orders: Any) -> None:
    """A process of one thread: runs what it is told to."""
    lane = Lane(folder, 1)
    for what in ("bare", "ours"):
        getattr(lane, what)(0, 10 * BATCH)  # to warm up
    orders.send("ready")
    while (order := orders.recv()) is not None:
        what, start, stop = order
        getattr(lane, what)(start, stop)
        orders.send("done")


class Lanes:
    """As many processes as cores, one thread each: what `evaluate` does with a million rows."""

    def __init__(self, folder: Path, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(count)]
        self._ends = [mine for mine, _ in pipes]
        self._processes = [context.Process(target=serve_lane, args=(folder, theirs)) for _, theirs in pipes]
        for process in self._processes:
            process.start()
        for end in self._ends:
            end.recv()

    def run(self, what: str, start: int, stop: int) -> None:
        """Each its share of the rows."""
        share = -(-(stop - start) // len(self._ends))
        for i, end in enumerate(self._ends):
            end.send((what, start + i * share, min(start + (i + 1) * share, stop)))
        for end in self._ends:
            end.recv()

    def close(self) -> None:
        """Let them go."""
        for end, process in zip(self._ends, self._processes, strict=True):
            end.send(None)
            process.join()


def throughput(folder: Path, rows: int) -> dict[str, Any]:
    """Rows per second of all, and their ratios."""
    import onnxproof

    onnxproof.export(*model(), out=folder)
    x = np.random.default_rng(0).standard_normal((rows, FEATURES), dtype=np.float32)
    x.tofile(folder / "rows.bin")
    np.save(folder / "rows.npy", x)
    np.save(folder / "labels.npy", (x[:, 0] > 0).astype(np.int64))
    del x
    one, many = Lane(folder, None), Lanes(folder, os.cpu_count() or 1)
    ways: dict[str, Callable[[int, int], None]] = {
        "bare": one.bare,
        "bare_lanes": lambda start, stop: many.run("bare", start, stop),
        "ours_lanes": lambda start, stop: many.run("ours", start, stop),
        "ours": one.ours,
        "reading": one.reading,
    }
    step = rows // WINDOWS
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(-1, PASSES * WINDOWS):  # the first turn is to warm up
        # Whoever comes after another process finds cold caches and sleeping threads: everyone's turn to be first.
        order = [list(ways)[(i + k) % len(ways)] for k in range(len(ways))]
        for name in order:
            way = ways[name]
            start = max(i, 0) % WINDOWS * step
            way(start, start + 4 * BATCH)
            began = time.perf_counter()
            way(start, start + step)
            spent[name] += [time.perf_counter() - began] if i >= 0 else []
    many.close()
    total = {name: sum(seconds) for name, seconds in spent.items()}
    middle = {name: statistics.median(seconds) for name, seconds in spent.items()}
    return {
        "rows": step * WINDOWS,
        "default": total["bare"] / total["ours_lanes"],
        "default_median": middle["bare"] / middle["ours_lanes"],
        "alike": total["bare_lanes"] / total["ours_lanes"],
        "single": total["bare"] / total["ours"],
        "single_reading": total["reading"] / total["ours"],
        "rows_per_second": PASSES * step * WINDOWS / total["ours_lanes"],
    }


def whole_run(folder: Path, rows: int, *extra: str) -> dict[str, Any]:
    """The command line on a parquet file: seconds, and the peak of the largest process."""
    data = folder / f"rows-{rows}.parquet"
    write_rows(data, rows)
    out = folder / f"out-{rows}-{len(extra)}"
    command = [sys.executable, "-m", "onnxproof", "evaluate", f"{Path(__file__).resolve()}:model", "--data", str(data)]
    command += [
        "--batch-size",
        str(BATCH),
        "--accept",
        "OX506",
        "--reason",
        "random weights",
        "--out",
        str(out),
        *extra,
    ]
    measure = (
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "print(json.dumps(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
    )
    began = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", measure, *command], capture_output=True, text=True, check=True)
    quality = json.loads((out / "proof.json").read_text())["quality"]
    return {
        "rows": quality["n"],
        "data_mb": data.stat().st_size / 1e6,
        "peak_mb": json.loads(result.stdout) / 1e3,
        "seconds": time.perf_counter() - began,
        "shares": quality["seconds"],
        "where": quality["where"],
    }


def report(speed: dict[str, Any], small: dict[str, Any], large: dict[str, Any], processes: dict[str, Any]) -> str:
    """The page."""
    growth = large["peak_mb"] - small["peak_mb"]
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in large["shares"].items())
    return f"""# What evaluation costs

Made by `make evaluate` ({platform.machine()}, {os.cpu_count()} cores). What is measured stands at the top of `benchmarks/evaluate.py`.

**Throughput.** {speed["rows"]:,} rows of {FEATURES} numbers, batches of {BATCH}, a network of three layers. Sets of this size are shared by one process per core, with
one thread each: the ONNX side of the evaluation then runs at **{speed["default"]:.0%}** of a bare `session.run` loop over an array in memory with all threads (medians of
the turns: {speed["default_median"]:.0%}), and at {speed["alike"]:.0%} of bare loops in as many processes; {speed["rows_per_second"]:,.0f} rows/s. In a single process with
all threads, as smaller sets are run, it is {speed["single"]:.0%} of the bare loop and {speed["single_reading"]:.0%} of one that reads each batch from a file itself: there
reading and watching the rows stand between two runs.

**Memory.** The whole command, both sides with metrics and intervals, on parquet:

| rows | file | peak of the largest process | seconds |
|---|---|---|---|
| {small["rows"]:,} | {small["data_mb"]:.0f} MB | {small["peak_mb"]:.0f} MB | {small["seconds"]:.0f} |
| {large["rows"]:,} | {large["data_mb"]:.0f} MB | {large["peak_mb"]:.0f} MB | {large["seconds"]:.0f} |
| {processes["rows"]:,}, {processes["where"]} | {processes["data_mb"]:.0f} MB | {processes["peak_mb"]:.0f} MB | {processes["seconds"]:.0f} |

Ten times the rows take {growth:+.0f} MB, {growth * 1e6 / (large["rows"] - small["rows"]):.0f} bytes per further example: its scores on both sides, its label, and what sorting
them takes while metrics are computed. Inputs are never kept. In one process the time went to: {told} (PyTorch and onnxruntime take turns).
"""


def main() -> None:
    """Measure all, or one part again; the page is made of what was measured last."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--part", choices=("all", "throughput", "memory"), default="all")
    asked = parser.parse_args()
    measured: dict[str, Any] = json.loads(NUMBERS.read_text()) if NUMBERS.is_file() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.part != "memory":
            measured["speed"] = throughput(folder, asked.rows)
        if asked.part != "throughput":
            measured["small"] = whole_run(folder, asked.rows // 10, "--workers", "1")
            measured["large"] = whole_run(folder, asked.rows, "--workers", "1")
            measured["processes"] = whole_run(folder, asked.rows)
    NUMBERS.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    REPORT.write_text(report(**measured), encoding="utf-8")
    print(report(**measured))


if __name__ == "__main__":
    main()
