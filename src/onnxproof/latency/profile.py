"""Which nodes take the time: a profile of the session that ships, mapped to modules and lines."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxproof.candidates.candidate import Candidate, NodeTime, Profiling
from onnxproof.graph import sourcemap
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph
from onnxproof.latency.points import Point
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.latency import OperatorShare, Profile, SlowNode
from onnxproof.request.session import SessionSettings

WARM_RUNS = 3
RUNS = 50
SECONDS = 2.0
KEPT_NODES = 20
BLOCKED = "_nchwc"
# Bytes of an artifact up to which the session's own graph is written out, to know what its nodes are made of.
WRITTEN_UP_TO = 1_000_000_000


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


def profile_session(
    candidate: Candidate, artifact: Artifact, settings: SessionSettings, renamed: Mapping[str, str], point: Point
) -> Profile | None:
    """Run a session like the one that ships, with its profiler on; None where the candidate has none."""
    if not isinstance(candidate, Profiling) or not candidate.abilities.profile:
        return None
    seen = candidate.profile(
        Path(artifact.path),
        settings,
        renamed,
        point.inputs,
        runs=(WARM_RUNS + 1, WARM_RUNS + RUNS),
        seconds=SECONDS,
        results=artifact.bytes <= WRITTEN_UP_TO,
    )
    origins = _Origins(artifact, seen.results)
    return summarise(collect(seen.times, seen.runs), seen.runs, origins, point.batch, point.sizes)


def collect(times: Iterable[NodeTime], runs: int) -> dict[str, Total]:
    """Node → its times in every run but the first few (a node in a loop has several times in a run: they are added up)."""
    totals: dict[str, Total] = defaultdict(Total)
    for time in times:
        total = totals[time.node]
        total.op, total.provider = time.op, time.provider
        total.durations.append(time.microseconds)
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
        total, origin = totals[name], origins.of(name) if origins else Origin()
        place = (origin.module, origin.file, origin.line, origin.text)
        nodes.append(SlowNode(name, total.op, times[name] / whole, times[name] / 1e3, total.provider, *place))
    providers: Counter[str] = Counter()
    shares: Counter[str] = Counter()
    for name, total in totals.items():
        providers[total.provider] += times[name] / whole  # type: ignore[assignment]  # shares, not counts
        shares[total.op] += times[name] / whole  # type: ignore[assignment]  # shares, not counts
    counts = Counter(total.op for total in totals.values())
    ops = {op: OperatorShare(share, float(counts[op])) for op, share in shares.most_common()}
    fused = tuple(sorted(set(counts) - origins.ops)) if origins else ()
    return Profile(batch, dict(sizes), max(1, runs - WARM_RUNS), tuple(nodes), ops, dict(providers), fused)


class _Origins:
    """Node of the session's graph → where it comes from. A rewrite renames nodes and keeps the names of their results."""

    def __init__(self, artifact: Artifact, results: Mapping[str, Sequence[str]]) -> None:
        self._known = sourcemap.read(Path(artifact.sourcemap)) if artifact.sourcemap else {}
        self._graph = Graph.read(Path(artifact.path))
        self.ops = {node.op_type for node in self._graph.main.all_nodes()}
        self._results = results

    def of(self, name: str) -> Origin:
        """Its origin: by its own name, by the value it makes, or by the scope in its name."""
        # A convolution in onnxruntime's blocked layout is named after the value it makes, with a suffix.
        values = [value.removesuffix(BLOCKED) for value in (*self._results.get(name, ()), name)]
        made_by = [maker.name or "" for value in values if (maker := self._graph.writer(value)) is not None]
        for candidate in (name, *made_by):
            if candidate in self._known:
                return self._known[candidate]
        return sourcemap.read_scope(next(iter(made_by), name))
