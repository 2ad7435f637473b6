"""The parent's side of a benchmark: what other processes and earlier proofs add to the times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxproof.errors import UserError
from onnxproof.proof.latency import Earlier, Latency
from onnxproof.proof.proof import Proof
from onnxproof.request.benchmark import BenchSettings


def with_memory(
    latency: Latency | None, contender: str, points: Sequence[Mapping[str, Any]], counts: Sequence[int | None]
) -> Latency | None:
    """The record with the bytes that a contender takes at each of these sizes; None where nothing was timed."""
    if latency is None:
        return None
    memory = {(point["batch"], *sorted(point["sizes"].items())): n for point, n in zip(points, counts, strict=True)}
    runs = (
        replace(run, memory=memory.get((run.batch, *sorted(run.sizes.items())))) if run.contender == contender else run
        for run in latency.runs
    )
    return replace(latency, runs=tuple(runs))


def earlier_of(settings: BenchSettings | None) -> Earlier | None:
    """What the proof of `--baseline` measured."""
    if settings is None or settings.baseline is None:
        return None
    proof = Proof.load(settings.baseline)
    latency = proof.latency
    if latency is None:
        raise UserError(f"--baseline {settings.baseline}: this proof has no times; make one with `onnxproof bench`")
    runs = tuple(replace(run, samples=(), blocks=()) for run in latency.runs)
    versions = {name: str(getattr(proof.environment, name)) for name in ("torch", "onnxruntime", "onnxproof")}
    return Earlier(str(settings.baseline), latency.machine.fingerprint, runs, latency.speedup, versions)
