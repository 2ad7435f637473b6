"""Rows that ranges are taken from, and which way of taking them is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.candidates import choose_candidate
from onnxproof.data.examples import Examples
from onnxproof.data.opening import open_source
from onnxproof.lowering.conversion import Unsuitable, convert
from onnxproof.parity.declared import measure_cost
from onnxproof.proof.artifact import Artifact
from onnxproof.request.lowering import Lowering, Method
from onnxproof.request.request import VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays
from onnxproof.tensors.conversion import to_numpy

# Rows at a time, where the file leaves that open.
BATCH = 16
# Decibels on the calibration rows from which on another way of taking ranges is not tried.
GOOD = 40.0
OTHERS: tuple[Method, ...] = ("Percentile", "Entropy")


def read_calibration(subject: Subject, artifact: Artifact, settings: VerifySettings) -> list[Arrays]:
    """The rows that calibrate, in batches, under the names of the file; none without data."""
    if settings.data is None:
        return []
    examples = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    source = open_source(settings.data, part="calibration")
    rows = Examples(source, examples, settings.labels, settings.ids)
    dtypes = {name: array.dtype.name for name, array in examples.items()}
    pairs = pair_inputs(dtypes, artifact.inputs, subject.shapes()).pairs
    inputs = rows.take(np.arange(rows.source.count()))
    sizes = [port.shape[0] for port in artifact.inputs if port.shape]
    fixed = next((size for size in sizes if isinstance(size, int)), None)
    return [*_batches({pairs.get(name, name): array for name, array in inputs.items()}, fixed)]


def _batches(inputs: Arrays, fixed: int | None) -> Iterator[Arrays]:
    """Of the size that the file takes; what is left over is left out."""
    count, size = max((len(array) for array in inputs.values() if array.ndim), default=1), fixed or BATCH
    starts = range(0, count - size + 1, size) if fixed or count >= size else (0,)
    for start in starts:
        yield {name: array[start : start + size] if array.ndim else array for name, array in inputs.items()}


def count_rows(rows: Sequence[Arrays]) -> int:
    """Rows in all batches."""
    return sum(max((len(array) for array in batch.values() if array.ndim), default=1) for batch in rows)


def make_file(source: Path, target: Path, how: Lowering, rows: Sequence[Arrays], session: SessionSettings) -> Lowering:
    """Write the file; how it was made, with everything settled that was left open."""
    if how.kind != "int8 static":
        return replace(how, kept=convert(source, target, how))
    if not rows:
        raise Unsuitable("its ranges come from data: give --data with rows such as production sees")
    if how.method is not None:
        return replace(how, kept=convert(source, target, how, rows))
    settled = replace(how, method="MinMax")
    settled = replace(settled, kept=convert(source, target, settled, rows))
    best = measure(source, target, rows, session)
    for method in OTHERS if best < GOOD else ():
        other, aside = replace(how, method=method), target.with_suffix(f".{method}.onnx")
        try:
            other = replace(other, kept=convert(source, aside, other, rows))
        except Unsuitable:
            continue  # a histogram cannot be had of everything
        decibels = measure(source, aside, rows, session)
        if decibels > best:
            best, settled = decibels, other
            aside.replace(target)
        else:
            aside.unlink()
    return settled


def measure(source: Path, target: Path, rows: Sequence[Arrays], session: SessionSettings) -> float:
    """Decibels of the worst output of the worst batch: a file against the one that it was made of."""
    candidate = choose_candidate(session)
    before, after = (candidate.open(path, session) for path in (source, target))
    pairs = [(right, after.run(batch)[name]) for batch in rows for name, right in before.run(batch).items()]
    costs = [measure_cost(right, lower) for right, lower in pairs]
    return min((cost.decibels for cost in costs if cost is not None), default=GOOD)
