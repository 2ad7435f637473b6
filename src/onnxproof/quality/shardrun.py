"""Both sides on the rows of a shard: batches go in, a few numbers per example come out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.candidates.roles import BASELINE, CANDIDATE, told
from onnxproof.data.read_ahead import read_ahead
from onnxproof.data.source import Table
from onnxproof.errors import FindingError
from onnxproof.findings import found
from onnxproof.quality.accumulate import Shard, summary_columns
from onnxproof.quality.engine import Engine
from onnxproof.quality.farthest_scores import Farthest
from onnxproof.quality.flips import Explainer, changed
from onnxproof.quality.inputs import Watch
from onnxproof.quality.rows import Batch
from onnxproof.quality.task import UNKNOWN, Plan, decide, encode, score_columns

Array = NDArray[Any]
EXPLAINED_PER_SHARD = 512
"""Flips that the float64 truth is asked about; of more, the rest stay unexamined (`explained` is null)."""
LISTED_PER_SHARD = 5000


class ShardRun:
    """The state of a shard under way."""

    def __init__(self, engine: Engine, plan: Plan, start: int) -> None:
        self._engine, self._plan, self._start = engine, plan, start
        self._kept: dict[str, list[Array]] = {}
        self._flips: list[dict[str, Any]] = []
        self._flipped = 0
        self._examined = 0
        self._seconds: dict[str, float] = {}
        self._watch = Watch(hashed=engine.settings.train_data is not None)
        self._graph = engine.graph_output(plan.output)
        self._farthest = Farthest()
        self._apart = [0, 0.0, 0.0]
        """Scores compared, the sum of their differences, the largest."""

    def run(self, batches: Iterator[Batch], count: int | None, tell: Callable[[int], None]) -> Shard:
        """Take up to `count` batches (all of them without a count)."""
        began, rows = time.perf_counter(), 0
        for batch in read_ahead(self._watched(islice(batches, count))):
            self._seconds["data"] = self._seconds.get("data", 0.0) + time.perf_counter() - began
            self._take(batch)
            rows += batch.rows
            tell(batch.rows)
            began = time.perf_counter()
        self._watch.close(self._keep)
        columns = {name: np.concatenate(parts) for name, parts in self._kept.items()}
        facts = {
            "inputs": self._watch.facts(),
            "farthest": self._farthest.examine(self._explainer, self._engine.fixed),
            "apart": {"compared": self._apart[0], "total": self._apart[1], "worst": self._apart[2]},
        }
        return Shard(self._start, rows, columns, self._flips[:LISTED_PER_SHARD], self._flipped, facts, self._seconds)

    def _watched(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """What is noted about inputs is noted while they are read."""
        for batch in batches:
            self._watch.see(batch.inputs, batch.ids, batch.start)
            yield batch

    def _keep(self, name: str, values: Array) -> None:
        self._kept.setdefault(name, []).append(np.asarray(values))

    def _timed(self, role: str, work: Callable[[Table], dict[str, Array]], inputs: Table) -> dict[str, Array]:
        began = time.perf_counter()
        try:
            return work(inputs)
        finally:
            self._seconds[told(role)] = self._seconds.get(told(role), 0.0) + time.perf_counter() - began

    def _take(self, batch: Batch) -> None:
        plan, engine = self._plan, self._engine
        raw: dict[str, Array] = {}
        if BASELINE in engine.sides:
            raw[BASELINE] = self._timed(BASELINE, engine.baseline, batch.inputs)[plan.output]
        if CANDIDATE in engine.sides:
            raw[CANDIDATE] = self._timed(CANDIDATE, engine.candidate, batch.inputs)[self._graph]
        _same_shape(raw, engine.subject.baseline)
        codes = encode(batch.labels, plan)
        self._keep("labels", codes)
        kept = {side: score_columns(value, plan) for side, value in raw.items()}
        for side, scores in kept.items():
            if plan.keep_scores:
                self._keep(side, scores)
            else:
                for name, column in summary_columns(scores, codes, plan).items():
                    self._keep(f"{side}_{name}", column)
        if len(kept) == 2:
            apart = self._compare(kept)
            if plan.scale != "decision" and plan.task != "custom":
                self._farthest.see(batch, kept, apart)
            if plan.classification:
                self._find_flips(batch, kept, codes)
        if batch.served is not None:
            served = self._timed(CANDIDATE, engine.candidate, batch.served)[self._graph]
            scores = score_columns(served, plan)
            self._keep("served", decide(scores, plan) if plan.classification else scores)

    def _compare(self, kept: Mapping[str, Array]) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(kept["candidate"].astype(np.float32) - kept["baseline"].astype(np.float32))
        finite = apart if np.isfinite(apart.sum()) else apart[np.isfinite(apart)]
        self._apart[0] += finite.size
        self._apart[1] += float(finite.sum())
        self._apart[2] = max(self._apart[2], float(finite.max(initial=0.0)))
        return np.asarray(np.where(np.isfinite(apart), apart, 0.0) if finite is not apart else apart)

    def _find_flips(self, batch: Batch, kept: Mapping[str, Array], codes: Array) -> None:
        decisions = {side: decide(scores, self._plan) for side, scores in kept.items()}
        places = np.flatnonzero(changed(decisions["baseline"], decisions["candidate"]))
        self._flipped += len(places)
        if not len(places) or len(self._flips) >= LISTED_PER_SHARD:
            return
        room = max(0, EXPLAINED_PER_SHARD - self._examined)
        looked = places[:room]
        self._examined += len(looked)
        explained = self._explain(batch, kept, decisions, looked) if len(looked) else None
        for i, row in enumerate(places.tolist()):
            self._flips.append(self._flip(batch, kept, decisions, codes, row, explained, i))

    def _explainer(self) -> Explainer:
        return Explainer(self._engine.eager, self._engine.double(), self._plan)

    def _explain(self, batch: Batch, kept: Mapping[str, Array], decisions: Mapping[str, Array], looked: Array) -> Any:
        engine, explainer = self._engine, self._explainer()
        if engine.fixed is not None:  # the module may want its whole batch: explain all rows, then choose
            every = np.arange(batch.rows)
            return _chosen(self._explain_rows(explainer, batch, kept, decisions, every), looked)
        return self._explain_rows(explainer, batch, kept, decisions, looked)

    def _explain_rows(
        self, explainer: Explainer, batch: Batch, kept: Mapping[str, Array], decisions: Mapping[str, Array], rows: Array
    ) -> Any:
        inputs = {name: a[rows] if a.ndim else a for name, a in batch.inputs.items()}
        return explainer.explain(
            inputs, {s: v[rows] for s, v in kept.items()}, {s: v[rows] for s, v in decisions.items()}
        )

    def _flip(
        self,
        batch: Batch,
        kept: Mapping[str, Array],
        decisions: Mapping[str, Array],
        codes: Array,
        row: int,
        explained: Any,
        place: int,
    ) -> dict[str, Any]:
        looked = explained is not None and place < len(explained.explained)
        b, c = decisions["baseline"][row], decisions["candidate"][row]
        return {
            "id": batch.name(row),
            "row": batch.start + row,
            "label": self._named(codes[row]),
            "baseline": self._named(b),
            "candidate": self._named(c),
            "baseline_score": _score_of(kept["baseline"][row], b),
            "candidate_score": _score_of(kept["candidate"][row], c),
            "margin": float(explained.margin[place]) if looked else None,
            "truth_margin": float(explained.truth[place]) if looked else None,
            "allowed": float(explained.allowed[place]) if looked else None,
            "explained": bool(explained.explained[place]) if looked else None,
        }

    def _named(self, decision: Any) -> Any:
        """A decision in the user's words; null for none."""
        names = self._plan.classes
        if np.ndim(decision):
            if (decision == UNKNOWN).any():
                return None
            return [names[i] for i in np.flatnonzero(decision)]
        return names[int(decision)] if 0 <= int(decision) < len(names) else None


def _chosen(explained: Any, rows: Array) -> Any:
    return replace(explained, **{name: getattr(explained, name)[rows] for name in explained.__dataclass_fields__})


def _score_of(scores: Any, decision: Any) -> Any:
    """The score of a decision: the class's own, or the one there is."""
    if not np.ndim(scores):
        return float(scores)
    if np.ndim(decision):
        return [float(value) for value in scores[:32]]
    return float(scores[int(decision)]) if int(decision) >= 0 else None


def _same_shape(raw: Mapping[str, Array], baseline: str) -> None:
    ours, theirs = list(raw["candidate"].shape), list(raw["baseline"].shape)
    if ours != theirs:
        told = f"{baseline} {theirs}, onnxruntime {ours}"
        raise FindingError(found("OX518", f"the scores have different shapes: {told}"))
