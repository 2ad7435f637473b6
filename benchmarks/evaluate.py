"""One million rows: memory, and throughput beside a bare `session.run` loop at the same batch.

    python -m benchmarks.evaluate [--rows 1000000]

Throughput: the ONNX side of the evaluation alone (reading the file, choosing and casting inputs, watching them, running
the session, keeping scores and labels), beside a loop that calls `session.run` on slices of an array that is in memory
already, and one that reads each batch from a raw file first. Both use the same session and batch and see every row once, in turns of a twentieth of the rows in one process, so
that what else the machine does falls on both. PyTorch's forwards are not part of either: they take their own time, which is told beside.

Memory: the command line's own run (`onnxproof evaluate`, both sides, metrics and intervals included) in a process of its
own, for a tenth of the rows and for all of them; the peak is of the largest process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

FEATURES, BATCH, WINDOWS = 64, 4096, 20
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


def throughput(folder: Path, rows: int) -> dict[str, Any]:
    """Rows per second of both, and their ratio."""
    import onnxproof
    from onnxproof.artifact.file import read_artifact
    from onnxproof.job import SessionSettings
    from onnxproof.quality.engine import Engine
    from onnxproof.quality.settings import EvaluateSettings
    from onnxproof.quality.shardrun import ShardRun
    from onnxproof.quality.sources import open_source
    from onnxproof.subject import make_subject

    module, inputs = model()
    onnxproof.export(module, inputs, out=folder)
    data = str(folder / "rows.npz")
    x = np.random.default_rng(0).standard_normal((rows, FEATURES), dtype=np.float32)
    plain = folder / "rows.bin"
    x.tofile(plain)
    np.savez(data, x=x, labels=(x[:, 0] > 0).astype(np.int64))
    settings = EvaluateSettings(data, batch_size=BATCH)
    artifact = read_artifact(folder / "model.onnx")
    engine = Engine(make_subject(module, inputs), artifact, SessionSettings(), settings, sides=("candidate",))
    source = engine.open(open_source(data))
    plan = engine.plan(source, source.all_labels())
    session, name = engine.session.session, engine.session.session.get_inputs()[0].name

    def bare(start: int, stop: int) -> float:
        began = time.perf_counter()
        for first in range(start, stop, BATCH):
            session.run(None, {name: x[first : min(first + BATCH, stop)]})
        return time.perf_counter() - began

    def reading(start: int, stop: int) -> float:
        began = time.perf_counter()
        for first in range(start, stop, BATCH):
            count = min(first + BATCH, stop) - first
            batch = np.fromfile(plain, np.float32, count * FEATURES, offset=first * FEATURES * 4)
            session.run(None, {name: batch.reshape(count, FEATURES)})
        return time.perf_counter() - began

    def ours(start: int, stop: int) -> float:
        began = time.perf_counter()
        shard = ShardRun(engine, plan, start).run(source.batches(start, BATCH, stop), None, lambda count: None)
        assert shard.rows == stop - start
        return time.perf_counter() - began

    step = rows // WINDOWS
    bare(0, step), ours(0, step)  # to warm up
    windows = [(i * step, (i + 1) * step) for i in range(WINDOWS)]
    pairs = [(bare(*window), ours(*window), reading(*window)) for window in windows]
    spent = [sum(seconds) for seconds in zip(*pairs, strict=True)]
    return {
        "rows": step * WINDOWS,
        "ratio": spent[0] / spent[1],
        "median": statistics.median(b / o for b, o, _ in pairs),
        "reading": spent[2] / spent[1],
        "rows_per_second": step * WINDOWS / spent[1],
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

**Throughput.** {speed["rows"]:,} rows of {FEATURES} numbers, batches of {BATCH}, a network of three layers: the ONNX side of the evaluation runs at
**{speed["ratio"]:.0%}** of a bare `session.run` loop over an array in memory (median of the turns {speed["median"]:.0%}), and at **{speed["reading"]:.0%}**
of a loop that reads each batch from a file itself, as it must where the data do not fit; {speed["rows_per_second"]:,.0f} rows/s.

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
