"""Runs and speed-ups of the proof, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from onnxproof.latency.contenders import Contender
from onnxproof.latency.harness import Measured, list_calm
from onnxproof.latency.points import Point
from onnxproof.latency.scenarios import Served
from onnxproof.latency.statistics import bound_ratio, find_percentile
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import BASELINE, Bound, Run, Speedup, thin_samples
from onnxproof.request.benchmark import Scenario
from onnxproof.request.thresholds import SHOWN_PERCENTILES


def _make_run(contender: Contender, point: Point, scenario: Scenario, samples: Sequence[int], concurrency: int) -> Run:
    """A run with everything that follows from its samples."""
    found = {key: find_percentile(samples, share) for key, share in SHOWN_PERCENTILES.items()}
    mean = float(np.mean(samples)) / 1e6
    return Run(
        contender=contender.name,
        batch=point.batch,
        sizes=dict(point.sizes),
        scenario=scenario,
        samples=thin_samples(samples),
        count=len(samples),
        percentiles={key: Bound(*(ns / 1e6 for ns in one)) for key, one in found.items() if one is not None},
        min_ms=min(samples) / 1e6,
        max_ms=max(samples) / 1e6,
        mean_ms=mean,
        throughput=point.batch * 1e3 / mean,
        threads=contender.threads,
        concurrency=concurrency,
    )


def run_single(
    contender: Contender, point: Point, measured: Measured, compared: int, differing: tuple[Comparison, ...]
) -> Run:
    """One call after the other."""
    return replace(
        _make_run(contender, point, "single", measured.samples, 1),
        blocks=tuple(measured.blocks),
        cpu_ms=1e3 * measured.cpu / max(1, len(measured.samples)),
        crowded=sum(measured.crowded),
        load_ms=contender.load_ms,
        first_ms=contender.first_ms,
        warmup=measured.warmup,
        steady=measured.steady,
        cut=measured.cut,
        calls_per_block=measured.per_block,
        compared=compared,
        differing=differing,
    )


def run_server(contender: Contender, point: Point, served: Served, workers: int, *, rate: float, least: int) -> Run:
    """Requests at a rate; `least` is the count below which it was cut short."""
    count = len(served.latencies)
    return replace(
        _make_run(contender, point, "server", served.latencies.tolist(), workers),
        throughput=point.batch * count / served.seconds,
        rate=rate,
        waiting_ms=float(served.waits.mean()) / 1e6,
        backlog=served.backlog,
        cut=count < least,
    )


def run_offline(contender: Contender, point: Point, measured: Measured, workers: int, calls: int) -> Run:
    """Bursts of so many calls; a sample is the time per call, not a latency."""
    return replace(
        _make_run(contender, point, "offline", [round(sample / calls) for sample in measured.samples], workers),
        percentiles={},
        blocks=tuple(measured.blocks),
        steady=measured.steady,
        cut=measured.cut,
    )


def measure_speedups(
    point: Point, measured: Mapping[str, Measured], seed: int, scenario: Scenario = "single", concurrency: int = 1
) -> Iterator[Speedup]:
    """How much faster than PyTorch each contender is, where there are rounds enough in which both had the cores."""
    base = measured[BASELINE]
    for name, one in measured.items():
        if name == BASELINE:
            continue
        rounds = list_calm([base, one])
        interval = bound_ratio([base.blocks[i] for i in rounds], [one.blocks[i] for i in rounds], seed=seed)
        if interval is not None:
            yield Speedup(point.batch, name, *interval, len(rounds), point.sizes, scenario, concurrency)
