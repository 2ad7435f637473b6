"""What is kept of a shard of the data, how it is written down, and how shards are put together again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.files import replacing
from onnxproof.quality.task import UNKNOWN, Plan, decide, to_probabilities
from onnxproof.tensors.arrays import Array, Floats

SIDES = ("baseline", "candidate")
# What is kept of a side where its scores are not.
SUMMARY = ("decision", "true", "confidence", "square")


@dataclass(frozen=True)
class Shard:
    """The results of some rows: a few numbers per example, never its inputs."""

    start: int
    rows: int
    columns: Mapping[str, Array]
    flips: Sequence[Mapping[str, Any]] = ()
    flipped: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Sums and extremes that are added up over shards."""
    seconds: Mapping[str, float] = field(default_factory=dict)

    def save(self, path: Path, fingerprint: str) -> None:
        """Write the shard; a file is either complete or not there."""
        meta = {name: value for name, value in vars(self).items() if name != "columns"} | {"fingerprint": fingerprint}
        with replacing(path) as half, half.open("wb") as stream:
            parts: dict[str, Any] = {f"column/{k}": v for k, v in self.columns.items()}
            np.savez(stream, meta=np.array(json.dumps(meta)), **parts)

    @staticmethod
    def load(path: Path, fingerprint: str) -> Shard | None:
        """Read a shard back; None where it is not there or belongs to other data, another model or other settings."""
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                meta = json.loads(str(archive["meta"]))
                if meta.pop("fingerprint") != fingerprint:
                    return None
                columns = {n.removeprefix("column/"): archive[n] for n in archive.files if n.startswith("column/")}
                return Shard(columns=columns, **meta)
        except MemoryError:
            raise
        except Exception:
            return None  # half a file of a run that was killed while it wrote, or something else under its name


@dataclass(frozen=True)
class Side:
    """What one side answered for every example."""

    decisions: Array
    scores: Array | None = None
    true: Array | None = None
    """Probability given to the true class."""
    confidence: Array | None = None
    """Probability given to the decision."""
    square: Array | None = None
    """Brier's sum of squares."""


@dataclass(frozen=True)
class Scores:
    """All examples, in the order of the data."""

    plan: Plan
    n: int
    labels: Array
    sides: Mapping[str, Side]
    flips: Sequence[Mapping[str, Any]]
    flipped: int
    facts: Mapping[str, Any]
    columns: Mapping[str, Array]
    """What else is kept per example: hashes, a sample of rows, decisions after the other preprocessing."""
    seconds: Mapping[str, float]

    def read(self, side: str) -> Floats:
        """The scores of a side, for a task that keeps all of them."""
        return np.asarray(self.sides[side].scores, np.float64)


def summarise_columns(raw: Array, codes: Array, plan: Plan) -> dict[str, Array]:
    """What is kept of a row with very many classes."""
    p = to_probabilities(raw, plan)
    rows = np.arange(len(p))
    # −1 would take the last class. Rows without a label are left out of all metrics later.
    known = np.where(codes >= 0, codes, 0)
    with np.errstate(invalid="ignore"):
        true = p[rows, known]
        square = (p**2).sum(axis=1) - 2 * true + 1
    return {
        "decision": decide(raw, plan),
        "true": true.astype(np.float32),
        "confidence": p.max(axis=1).astype(np.float32),
        "square": square.astype(np.float32),
    }


def merge(shards: Sequence[Shard], plan: Plan) -> Scores:
    """Shards in the order of their rows as one; where and in which order they were computed leaves no trace."""
    ordered = sorted(shards, key=lambda shard: shard.start)
    names = list(ordered[0].columns) if ordered else []
    columns = {name: np.concatenate([shard.columns[name] for shard in ordered]) for name in names}
    if "sample_rows" in columns:
        columns["sample_rows"] = np.concatenate(_find_places(ordered))
    sides = {
        side: _read_side(columns, side, plan) for side in SIDES if side in columns or f"{side}_decision" in columns
    }
    used = {"labels", *SIDES, *(f"{side}_{part}" for side in SIDES for part in SUMMARY)}
    return Scores(
        plan=plan,
        n=sum(shard.rows for shard in ordered),
        labels=columns.get("labels", np.zeros(0)),
        sides=sides,
        flips=[flip for shard in ordered for flip in shard.flips],
        flipped=sum(shard.flipped for shard in ordered),
        facts=merge_facts([shard.facts for shard in ordered]),
        columns={name: column for name, column in columns.items() if name not in used},
        seconds=merge_facts([shard.seconds for shard in ordered]),
    )


def find_missing_labels(scores: Scores) -> NDArray[np.bool_]:
    """Examples without a label, or with one of several missing."""
    labels = scores.labels.reshape(scores.n, -1) if len(scores.labels) else scores.labels.reshape(0, 1)
    if scores.plan.task == "multilabel":
        return np.asarray((labels == UNKNOWN).any(axis=1))
    if scores.plan.classification:
        return np.asarray((labels < 0).any(axis=1))
    return np.asarray(~np.isfinite(labels).all(axis=1)) if labels.dtype.kind == "f" else np.zeros(scores.n, bool)


def find_missing_answers(side: Side, plan: Plan) -> NDArray[np.bool_]:
    """Examples for which a side gives no usable score: NaN, and for a number that is wanted infinity too."""
    if side.scores is None:
        return np.asarray(side.decisions < 0)
    if side.scores.dtype.kind != "f":
        return np.zeros(len(side.scores), bool)
    scores = side.scores.reshape(len(side.scores), -1)
    wrong = np.isnan(scores) if plan.classification else ~np.isfinite(scores)
    return np.asarray(wrong.any(axis=1))


def choose_measurable(scores: Scores) -> Scores:
    """The examples that have a label and an answer on every side; metrics of both sides are about these."""
    if scores.plan.task == "custom" or not scores.plan.by_row:
        return scores
    lost = find_missing_labels(scores)
    for side in scores.sides.values():
        lost = lost | find_missing_answers(side, scores.plan)
    if not lost.any():
        return scores
    kept = ~lost
    sides = {}
    for name, side in scores.sides.items():
        parts: dict[str, Any] = {part: None if v is None else v[kept] for part, v in vars(side).items()}
        sides[name] = Side(**parts)
    return replace(scores, n=int(kept.sum()), labels=scores.labels[kept], sides=sides)


def _find_places(ordered: Sequence[Shard]) -> list[Array]:
    """Where sampled rows are among the rows that are there: before a shard that was lost and after it."""
    starts = np.concatenate([[0], np.cumsum([shard.rows for shard in ordered])])[:-1]
    return [s.columns["sample_rows"] - s.start + int(at) for s, at in zip(ordered, starts, strict=True)]


def _read_side(columns: Mapping[str, Array], side: str, plan: Plan) -> Side:
    if side in columns:
        scores = columns[side]
        return Side(decide(scores, plan) if plan.classification else scores, scores)
    return Side(columns[f"{side}_decision"], None, *(columns[f"{side}_{part}"] for part in SUMMARY[1:]))


def merge_facts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts of several shards: numbers are added, except that `low` and `high` are extremes; the first text stays."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            merged[name] = value if name not in merged else _merge_fact(name, merged[name], value)
    return merged


def _merge_fact(name: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Mapping):
        return merge_facts([a, b])
    if isinstance(a, list):
        return [_merge_fact(name, x, y) for x, y in zip(a, b, strict=True)] if name.startswith("sum") else a
    if isinstance(a, (str, bool)):
        return a
    if name.startswith(("low", "first")):
        return min(a, b)
    return max(a, b) if name.startswith(("high", "worst")) else a + b
