"""The whole database, resumable: one row for each operation, dtype, exporter and opset, kept every few minutes."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import random
import resource
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

import onnx
import torch
from torch.onnx._constants import ONNX_DEFAULT_OPSET as DEFAULT

from benchmarks.atlas.measure import SETTLED, Combination, compare_plainly, measure
from benchmarks.atlas.rows import Row, read_rows, write_rows
from benchmarks.atlas.samples import load_database, load_operations, name_operation
from benchmarks.atlas.sharing import remember_tables, settle_down
from benchmarks.forked import ask
from onnxproof.artifact.exporter_output import catch_output

DTYPES = {
    "float32": ("float32",),
    "base": ("int64", "bool"),
    "more": ("float16", "bfloat16", "int32"),
    "rest": ("float64", "int16", "int8", "uint8"),
    "rare": ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
}
# The newest opset that each exporter writes.
OPSETS = {"dynamo": range(17, onnx.defs.onnx_opset_version() + 1), "torchscript": range(17, 21)}
# By their dtypes and exporter, at the default opset and at all others.
PASSES = tuple(f"{older}{kind}{opsets}" for kind in DTYPES for opsets in ("", " opsets") for older in ("", "older "))
# Operations for each forked process, bytes that it may take, and seconds after which rows are kept.
TOGETHER, MEMORY, KEEP_EVERY = 40, 12 << 30, 180.0


def read_pass(name: str) -> tuple[str, tuple[str, ...], list[int | None]]:
    """The exporter, dtypes and opsets of a pass."""
    exporter = "torchscript" if name.startswith("older ") else "dynamo"
    dtypes = DTYPES[name.removeprefix("older ").removesuffix(" opsets")]
    others: list[int | None] = [opset for opset in OPSETS[exporter] if opset != DEFAULT]
    return exporter, dtypes, others if name.endswith(" opsets") else [None]


def list_combinations(name: str, known: dict[str, Row]) -> Iterator[Combination]:
    """What a pass measures: other opsets of what is not known to be settled at the default one."""
    exporter, dtypes, opsets = read_pass(name)
    for dtype in dtypes:
        for op, supported in list_supported().items():
            default = Combination(op, dtype, exporter, None)
            if dtype in supported and (None in opsets or known.get(default.key, {}).get("status") not in SETTLED):
                yield from (Combination(op, dtype, exporter, opset) for opset in opsets)


@cache
def list_supported() -> dict[str, set[str]]:
    """Operation → dtypes that torch takes."""
    return {
        name_operation(op): {str(d).removeprefix("torch.") for d in op.supported_dtypes("cpu")}
        for op in load_database()
    }


def warm_up() -> None:
    """Everything that the processes to come would load one by one; no session, whose threads a fork would lose."""
    torch.set_num_threads(1)
    remember_tables()
    load_operations()
    with catch_output(), warnings.catch_warnings(action="ignore"):
        for opset in OPSETS["dynamo"]:
            torch.onnx.export(torch.nn.ReLU().eval(), (torch.ones(2),), dynamo=True, opset_version=opset, verbose=False)
    settle_down()


def _measure_here(asked: Sequence[Combination]) -> list[str]:
    """In a forked process: rows as JSON, which has words for NaN."""
    # Where an edge value is taken for a size, an error is better than a machine without memory.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    gc.collect()
    return [json.dumps(row) for row in measure(load_operations()[asked[0].op], asked)]


def measure_all(groups: Sequence[Sequence[Combination]]) -> Iterator[list[Row]]:
    """The rows of each group; where one dies or hangs, each of its combinations by itself."""
    for group, answer in zip(groups, ask(lambda n: _measure_here(groups[n]), len(groups), TOGETHER), strict=True):
        if not isinstance(answer, str):
            yield [json.loads(text) for text in answer]
        elif len(group) > 1:
            yield [row for rows in measure_all([[one] for one in group]) for row in rows]
        else:
            one = group[0]
            yield [{"op": one.op, "dtype": one.dtype, "exporter": one.exporter, "opset": one.opset, "status": answer}]


def check_sharing(count: int = 16) -> list[int]:
    """Of some operations by chance at several opsets: how many files are the same byte for byte as by a plain export, and of how many."""
    warm_up()
    chance = random.Random(0)
    pairs = [
        (op, dtype) for op, dtypes in list_supported().items() for dtype in ("float32", "int64") if dtype in dtypes
    ]
    results = [compare_plainly(*pair, chance.sample(OPSETS["dynamo"], 4)) for pair in chance.sample(pairs, count)]
    return [sum(map(sum, results)), sum(map(len, results))]


def measure_missing(passes: Sequence[str], minutes: float) -> None:
    """Measure until all is there or the time is over."""
    known = read_rows()
    # What of an operation and dtype is measured together shares its capture, its truth and its judgements.
    groups = defaultdict[tuple[str, str], list[Combination]](list)
    for one in (one for name in passes for one in list_combinations(name, known)):
        if one.key not in known:
            groups[one.dtype, one.op].append(one)
    print(f"{sum(map(len, groups.values()))} combinations to do in {len(groups)} groups", flush=True)
    warm_up()
    began = kept = time.monotonic()
    for number, rows in enumerate(measure_all(list(groups.values()))):
        known |= {Combination(row["op"], row["dtype"], row["exporter"], row["opset"]).key: row for row in rows}
        over = time.monotonic() - began > 60 * minutes
        if over or time.monotonic() - kept > KEEP_EVERY:
            write_rows(known.values())
            kept = time.monotonic()
            print(f"{kept - began:.0f} s: {number + 1} groups, {rows[-1]['op']} {rows[-1]['dtype']}", flush=True)
        if over:
            return
    write_rows(known.values())
    print(f"{time.monotonic() - began:.0f} s: all", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1e9, help="for measuring, and for scripts")
    parser.add_argument("--only", nargs="*", choices=(*PASSES, "page"), default=[*PASSES, "page"])
    asked = parser.parse_args()
    if passes := [name for name in asked.only if name != "page"]:
        measure_missing(passes, asked.minutes)
    if "page" in asked.only:
        from benchmarks.atlas.page import write_all

        write_all(read_rows(), asked.minutes)


if __name__ == "__main__":
    main()
