"""Which nodes take the time: onnxruntime's profile of the session that ships, mapped to modules and lines."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxruntime

from onnxproof.candidates.onnxruntime import SessionRunner, session_options
from onnxproof.graph import sourcemap
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph, names
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.latency import Profile, SlowNode
from onnxproof.request.request import SessionSettings
from onnxproof.tensors.arrays import Arrays

WARM_RUNS = 3
RUNS = 50
SECONDS = 2.0
KEPT_NODES = 20
SUFFIX = "_kernel_time"
BLOCKED = "_nchwc"
WRITTEN_UP_TO = 1_000_000_000
"""Bytes of an artifact up to which the session's own graph is written out, to know what its nodes are made of."""


@dataclass
class Total:
    """Times of one node over all runs."""

    op: str = ""
    provider: str = ""
    durations: list[float] = field(default_factory=list)
    """Microseconds, one for each run."""

    @property
    def typical(self) -> float:
        """The median over runs: an interruption hits some node of some run, and would make it look slow."""
        return statistics.median(self.durations) if self.durations else 0.0


def profile(
    artifact: Artifact,
    settings: SessionSettings,
    renamed: Mapping[str, str],
    inputs: Arrays,
    batch: int,
    sizes: Mapping[str, int],
) -> Profile:
    """Run a session like the one that ships, with onnxruntime's profiler on."""
    with tempfile.TemporaryDirectory(prefix="onnxproof-profile-") as folder:
        runner = _ProfiledRunner(artifact, settings, renamed, Path(folder))
        runs, events = runner.events(inputs)
        totals = collect(events, runs)
        origins = _Origins(artifact, runner.written)
    return summarise(totals, runs, origins, batch, sizes)


class _ProfiledRunner(SessionRunner):
    """The session that ships, profiled."""

    def __init__(self, artifact: Artifact, settings: SessionSettings, renamed: Mapping[str, str], folder: Path) -> None:
        super().__init__(artifact.path, settings, renamed)  # for the feed, and to fail with the usual message
        options = session_options(settings)
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        self.written: Path | None = None
        if artifact.bytes <= WRITTEN_UP_TO:
            self.written = folder / "session.onnx"
            options.optimized_model_filepath = str(self.written)
        providers = [(p.name, dict(p.options)) for p in settings.providers]
        disabled = list(settings.disabled_optimizers) or None
        self.session = onnxruntime.InferenceSession(
            artifact.path, options, providers=providers, disabled_optimizers=disabled
        )

    def events(self, inputs: Arrays) -> tuple[int, list[dict[str, Any]]]:
        """Runs, and what the profiler wrote about them."""
        feed, began, runs = self.feed(inputs), time.perf_counter(), 0
        while runs < WARM_RUNS + RUNS and (runs <= WARM_RUNS or time.perf_counter() - began < SECONDS):
            self.session.run(None, feed)
            runs += 1
        events = json.loads(Path(self.session.end_profiling()).read_text(encoding="utf-8"))
        return runs, [event for event in events if isinstance(event, dict)]


def collect(events: Iterable[Mapping[str, Any]], runs: int) -> dict[str, Total]:
    """Node → its times in every run but the first few (a node in a loop has several times in a run: they are added up)."""
    totals: dict[str, Total] = defaultdict(Total)
    for event in events:
        if event.get("cat") == "Node" and str(event.get("name", "")).endswith(SUFFIX):
            total = totals[str(event["name"])[: -len(SUFFIX)]]
            arguments = event.get("args") or {}
            total.op, total.provider = str(arguments.get("op_name", "")), str(arguments.get("provider", ""))
            total.durations.append(float(event.get("dur", 0)))
    for total in totals.values():
        per_run = max(1, len(total.durations) // max(runs, 1))
        sums = [sum(total.durations[i : i + per_run]) for i in range(0, len(total.durations), per_run)]
        total.durations = sums[WARM_RUNS:]
    return dict(totals)


def summarise(
    totals: Mapping[str, Total], runs: int, origins: _Origins | None, batch: int, sizes: Mapping[str, int]
) -> Profile:
    """Shares per node, per operator and per provider."""
    times = {name: total.typical for name, total in totals.items()}
    whole = sum(times.values()) or 1.0
    slowest = sorted(times, key=lambda name: -times[name])[:KEPT_NODES]
    nodes = []
    for name in slowest:
        origin = origins.of(name) if origins else Origin()
        nodes.append(
            SlowNode(
                name,
                totals[name].op,
                times[name] / whole,
                times[name] / 1e3,
                totals[name].provider,
                origin.module,
                origin.file,
                origin.line,
                origin.text,
            )
        )
    providers: Counter[str] = Counter()
    shares: Counter[str] = Counter()
    for name, total in totals.items():
        providers[total.provider] += times[name] / whole  # type: ignore[assignment]  # shares, not counts
        shares[total.op] += times[name] / whole  # type: ignore[assignment]  # shares, not counts
    counts = Counter(total.op for total in totals.values())
    ops = {op: {"share": share, "nodes": float(counts[op])} for op, share in shares.most_common()}
    fused = tuple(sorted(set(counts) - origins.ops)) if origins else ()
    return Profile(batch, dict(sizes), max(1, runs - WARM_RUNS), tuple(nodes), ops, dict(providers), fused)


class _Origins:
    """Node of the session's graph → where it comes from. A rewrite renames nodes and keeps the names of their results."""

    def __init__(self, artifact: Artifact, written: Path | None) -> None:
        self._known = sourcemap.read(Path(artifact.sourcemap)) if artifact.sourcemap else {}
        self._graph = Graph.read(Path(artifact.path))
        self.ops = {node.op_type for node in self._graph.main.all_nodes()}
        self._results: dict[str, list[str]] = {}
        if written is not None and written.is_file():
            self._results = {node.name or "": names(node.outputs) for node in Graph.read(written).nodes}

    def of(self, name: str) -> Origin:
        """Its origin: by its own name, by the value it makes, or by the scope in its name."""
        # A convolution in onnxruntime's blocked layout is named after the value it makes, with a suffix.
        values = [value.removesuffix(BLOCKED) for value in (*self._results.get(name, ()), name)]
        made_by = [maker.name or "" for value in values if (maker := self._graph.writer(value)) is not None]
        for candidate in (name, *made_by):
            if candidate in self._known:
                return self._known[candidate]
        return sourcemap.origin_of_scope(next(iter(made_by), name))
