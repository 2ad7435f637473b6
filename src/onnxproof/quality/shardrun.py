"""Both sides on the rows of a shard: batches go in, a few numbers per example come out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from onnxproof.candidates.roles import BASELINE, CANDIDATE, name_stage
from onnxproof.data.read_ahead import read_ahead
from onnxproof.data.source import Table
from onnxproof.errors import FindingError
from onnxproof.findings import found
from onnxproof.quality.accumulate import SIDES, Shard, merge_facts, summarise_columns
from onnxproof.quality.engine import Engine
from onnxproof.quality.farthest_scores import Farthest
from onnxproof.quality.flips import Explainer, find_changed
from onnxproof.quality.inputs import Watch
from onnxproof.quality.rows import Batch
from onnxproof.quality.task import UNKNOWN, Plan, decide, encode, select_scores
from onnxproof.tensors.arrays import Array

# Flips that the float64 truth is asked about; of more, the rest stay unexamined (`explained` is null).
EXPLAINED_PER_SHARD = 512
LISTED_PER_SHARD = 5000


class ShardRun(ABC):
    """The state of a shard under way."""

    def __init__(self, engine: Engine, plan: Plan, start: int) -> None:
        self._engine, self._plan, self._start = engine, plan, start
        self._kept: defaultdict[str, list[Array]] = defaultdict(list)
        self._flips: list[dict[str, Any]] = []
        self._flipped = 0
        self._examined = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._watch = Watch(hashed=engine.settings.train_data is not None)
        names = [plan.output] if plan.boxes is None else plan.boxes.members
        self._graph = {name: engine.graph_output(name) for name in names}
        self._farthest = Farthest(engine.fixed)
        self._apart: dict[str, Any] = {}
        """Scores compared, the sum of their differences, the largest."""

    def run(self, batches: Iterator[Batch], count: int | None, tell: Callable[[int], None]) -> Shard:
        """Take up to `count` batches (all of them without a count)."""
        began, rows = time.perf_counter(), 0
        for batch in read_ahead(self._watch_inputs(islice(batches, count))):
            self._seconds["data"] += time.perf_counter() - began
            self._take(batch)
            rows += batch.rows
            tell(batch.rows)
            began = time.perf_counter()
        columns = {name: np.concatenate(parts) for name, parts in self._kept.items()} | self._watch.columns()
        facts = {"inputs": self._watch.facts, "farthest": self._examine(), "apart": self._apart}
        return Shard(self._start, rows, columns, self._flips[:LISTED_PER_SHARD], self._flipped, facts, self._seconds)

    def _examine(self) -> Mapping[str, Any]:
        """The examples that differ most, and whether rounding explains it."""
        return self._farthest.examine(self._make_explainer)

    def _watch_inputs(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """What is noted about inputs is noted while they are read."""
        for batch in batches:
            self._watch.see(batch.inputs, batch.ids, batch.start)
            yield batch

    def _keep(self, name: str, values: Array) -> None:
        self._kept[name].append(np.asarray(values))

    def _time(self, role: str, work: Callable[[Table], dict[str, Array]], inputs: Table) -> dict[str, Array]:
        began = time.perf_counter()
        outputs = work(inputs)
        self._seconds[name_stage(role)] += time.perf_counter() - began
        return outputs

    @abstractmethod
    def _take(self, batch: Batch) -> None:
        """Run a batch on both sides and keep what is needed of it."""

    def _answer(self, batch: Batch) -> dict[str, dict[str, Array]]:
        """What both sides answer, under the module's names."""
        theirs = self._time(BASELINE, self._engine.baseline, batch.inputs)
        ours = self._time(CANDIDATE, self._engine.candidate, batch.inputs)
        return {BASELINE: theirs, CANDIDATE: {name: ours[graph] for name, graph in self._graph.items()}}

    def _score(self, batch: Batch) -> dict[str, Array]:
        """The scores of both sides."""
        raw = {side: outputs[self._plan.output] for side, outputs in self._answer(batch).items()}
        ours, theirs = list(raw[CANDIDATE].shape), list(raw[BASELINE].shape)
        if ours != theirs:
            shapes = f"{self._engine.subject.baseline} {theirs}, onnxruntime {ours}"
            raise FindingError(found("OX518", f"the scores have different shapes: {shapes}"))
        return raw

    def _compare(self, kept: Mapping[str, Array]) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(kept["candidate"].astype(np.float32) - kept["baseline"].astype(np.float32))
        # One pass: a sum is finite only where all its terms are.
        finite = apart if np.isfinite(apart.sum()) else apart[np.isfinite(apart)]
        here = {"compared": finite.size, "total": float(finite.sum()), "worst": float(finite.max(initial=0.0))}
        self._apart = merge_facts([self._apart, here])
        return np.asarray(np.where(np.isfinite(apart), apart, 0.0) if finite is not apart else apart)

    def _make_explainer(self, places: Array | None = None) -> Explainer:
        return Explainer(self._engine.eager, self._engine.double, self._plan, places)

    def _name_decision(self, decision: Any) -> Any:
        """A decision in the user's words; null for none."""
        names = self._plan.classes
        if np.ndim(decision):
            return None if (decision == UNKNOWN).any() else [names[i] for i in np.flatnonzero(decision)]
        return names[int(decision)] if 0 <= int(decision) < len(names) else None


class RowRun(ShardRun):
    """One answer for each example."""

    def _take(self, batch: Batch) -> None:
        plan, engine, raw = self._plan, self._engine, self._score(batch)
        codes = encode(batch.labels, plan)
        self._keep("labels", codes)
        kept = {side: select_scores(value, plan) for side, value in raw.items()}
        for side, scores in kept.items():
            if plan.keep_scores:
                self._keep(side, scores)
            else:
                for name, column in summarise_columns(scores, codes, plan).items():
                    self._keep(f"{side}_{name}", column)
        apart = self._compare(kept)
        if plan.scale != "decision" and plan.task != "custom":
            self._farthest.see(batch, kept, apart)
        if plan.classification:
            self._find_flips(batch, kept, codes)
        if batch.served is not None:
            served = self._time(CANDIDATE, engine.candidate, batch.served)[self._graph[plan.output]]
            scores = select_scores(served, plan)
            self._keep("served", decide(scores, plan) if plan.classification else scores)

    def _find_flips(self, batch: Batch, kept: Mapping[str, Array], codes: Array) -> None:
        decisions = {side: decide(scores, self._plan) for side, scores in kept.items()}
        places = np.flatnonzero(find_changed(decisions["baseline"], decisions["candidate"]))
        self._flipped += len(places)
        if len(self._flips) >= LISTED_PER_SHARD:
            return
        looked = places[: max(0, EXPLAINED_PER_SHARD - self._examined)]
        self._examined += len(looked)
        notes = self._explain(batch, kept, decisions, looked) if len(looked) else {}
        for row in places.tolist():
            flip = {"id": batch.name(row), "row": batch.start + row, "label": self._name_decision(codes[row])}
            for side in SIDES:
                flip[side] = self._name_decision(decisions[side][row])
                flip[f"{side}_score"] = _pick_score(kept[side][row], decisions[side][row])
            self._flips.append(flip | notes.get(row, {}))

    def _explain(
        self, batch: Batch, kept: Mapping[str, Array], decisions: Mapping[str, Array], looked: Array
    ) -> dict[int, dict[str, Any]]:
        """What is known about some rows. A module may want its whole batch: then all of it is asked about."""
        rows = looked if self._engine.fixed is None else np.arange(batch.rows)
        inputs = {name: a[rows] if a.ndim else a for name, a in batch.inputs.items()}
        sides, decided = ({side: v[rows] for side, v in part.items()} for part in (kept, decisions))
        explained = self._make_explainer().explain(inputs, sides, decided)
        return {row: explained.of(place) for place, row in enumerate(rows.tolist())}


def _pick_score(scores: Any, decision: Any) -> Any:
    """The score of a decision: the class's own, or the one there is."""
    if not np.ndim(scores):
        return float(scores)
    if np.ndim(decision):
        return [float(value) for value in scores[:32]]
    return float(scores[int(decision)]) if int(decision) >= 0 else None
