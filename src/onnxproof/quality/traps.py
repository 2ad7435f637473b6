"""Facts about the data that make a good result worth less than it looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import kolmogi
from scipy.stats import ks_2samp, spearmanr

from onnxproof.data.source import rechunk
from onnxproof.errors import InputError
from onnxproof.proof.traps import Duplicates, Gap, InputFacts, Leak, Near, Ring, Shift, TrainingFacts
from onnxproof.quality.accumulate import Scores
from onnxproof.quality.engine import Engine
from onnxproof.quality.inputs import Watch, extract_features
from onnxproof.quality.intervals import bound_proportion
from onnxproof.quality.rows import Rows
from onnxproof.quality.task import decide, encode, select_scores
from onnxproof.tensors.arrays import Array

# Dimensions in which neighbours are looked for, where rows have more than twice as many.
PROJECTED = 64
# Shares of the usual distance between neighbours below which two rows are near.
RADII = (0.3, 0.1, 0.03, 0.01)
PROBES = 1024
GAP_ROWS = 20_000
SHOWN = 5
# Training rows among which neighbours are looked for at once.
CHUNK = 16_384
# Products leave an error of about this share of a row's size: nearer than that is the same to us.
ROUNDING = 1e-6


def look_at_inputs(
    scores: Scores, examples: Mapping[str, Array], ranges: Mapping[str, Any], data_dtype: str | None = None
) -> dict[str, InputFacts]:
    """Per input: extremes, values that are not finite, features that never change, and what was declared."""
    found: dict[str, InputFacts] = {}
    for name, noted in scores.facts.get("inputs", {}).items():
        sample = scores.columns.get(f"sample/{name}")
        example = examples[name]
        entry = {key: noted[key] for key in ("rows", "nonfinite_rows", "nonfinite", "low", "high")}
        entry |= {"rank": example.ndim, "dtype": example.dtype.name, "data_dtype": data_dtype}
        finite = example[np.isfinite(example)] if example.dtype.kind == "f" else example
        if finite.size:
            entry |= {"example_low": float(finite.min()), "example_high": float(finite.max())}
        if sample is not None and len(sample) > 1:
            still = (sample == sample[:1]).all(axis=0)
            entry |= {"features": int(sample.shape[1]), "constant": tuple(np.flatnonzero(still)[:50].tolist())}
            entry["constant_count"] = int(still.sum())
        if name in ranges:
            entry["declared"] = (ranges[name].low, ranges[name].high)
        if noted.get("channel_values"):
            entry["channels"] = average_channels(noted)
            entry["image"] = True
        found[name] = InputFacts(**entry)
    return found


def average_channels(noted: Mapping[str, Any]) -> tuple[float, ...]:
    """Of an input that is images; nothing for others."""
    return tuple(s / noted["channel_values"] for s in noted.get("sum_channels", ()))


def find_leaks(scores: Scores) -> tuple[Leak, ...]:
    """Single features that give the label away, the best of each input, with the next best beside it."""
    rows = scores.columns.get("sample_rows")
    if rows is None or scores.plan.task not in ("binary", "multiclass", "regression"):
        return ()
    labels = scores.labels[rows] if scores.labels.ndim == 1 else scores.labels.reshape(scores.n, -1)[rows, 0]
    measure = _measure_monotony if scores.plan.task == "regression" else _measure_purity
    found = []
    for name, sample in scores.columns.items():
        if name.startswith("sample/") and len(sample) >= 30:
            values = np.array([measure(sample[:, i], labels) for i in range(sample.shape[1])])
            order = np.argsort(-values, kind="stable")
            best, second = int(order[0]), values[order[1]] if len(order) > 1 else 0.0
            found.append(Leak(name.removeprefix("sample/"), best, float(values[best]), float(second)))
    return tuple(found)


def _measure_purity(feature: Array, labels: Array) -> float:
    """1 where equal labels lie together along the feature, 0 where their order is random; equal values are shuffled."""
    known = np.isfinite(feature) & (labels >= 0)
    if known.sum() < 30:
        return 0.0
    feature, labels = feature[known], labels[known]
    # Data often come sorted by label: equal values would keep that order and look like a leak.
    shuffled = np.random.default_rng(0).permutation(len(labels))
    ranked = labels[shuffled][np.argsort(feature[shuffled], kind="stable")]
    shares = np.bincount(ranked.astype(np.int64)) / len(ranked)
    classes = int((shares > 0).sum())
    expected = (len(ranked) - 1) * (1.0 - float((shares**2).sum()))
    if classes < 2 or expected < 5:
        return 0.0
    changes = float((ranked[1:] != ranked[:-1]).sum()) - (classes - 1)
    return max(0.0, 1.0 - changes / expected)


def _measure_monotony(feature: Array, labels: Array) -> float:
    known = np.isfinite(feature) & np.isfinite(labels)
    if known.sum() < 30 or np.ptp(feature[known]) == 0 or np.ptp(labels[known]) == 0:
        return 0.0
    return abs(float(spearmanr(feature[known], labels[known]).statistic))


class Training:
    """What the training data tell about the test data: two passes over them, a few batches in memory."""

    def __init__(self, engine: Engine, rows: Rows, scores: Scores) -> None:
        self._engine, self._rows, self._scores = engine, rows, scores
        self._watch = Watch(hashed=True)
        self._columns: dict[str, Array] = {}
        """What is kept of the training rows, as of the test rows."""
        self._right, self._seen, self._error = 0, 0, 0.0
        self.count = 0

    def compare(self) -> TrainingFacts:
        """Duplicates, shared ids, the gap, the shift."""
        known = self._rows.source.rows
        step = max(1, -(-known // GAP_ROWS)) if known else 1
        for batch in self._rows.batches(0, self._engine.batch):
            self._watch.see(batch.inputs, batch.ids, batch.start)
            if self._rows.labelled and self._seen < GAP_ROWS:
                self._measure(batch, step)
            self.count += batch.rows
        if not self.count:
            raise InputError("--train-data has no rows")
        self._columns = self._watch.columns()
        alike = np.unique(self._columns["hash"], return_counts=True)[1]
        return TrainingFacts(
            train_rows=self.count,
            # Test rows that are training rows, and how many training rows have a twin among themselves.
            duplicates=replace(self._count_shared("hash"), train_twins=int(alike[alike > 1].sum()) / self.count),
            near=self._find_near(),
            ids=self._count_shared("id_hash") if "id_hash" in self._columns.keys() & self._scores.columns else None,
            gap=self._measure_gap(),
            shift=self._find_shifts(),
            channels={
                name: means for name, noted in self._watch.facts.items() if len(means := average_channels(noted)) == 3
            },
        )

    def _measure(self, batch: Any, step: int) -> None:
        """How well the candidate does on the data it was trained on."""
        plan = self._scores.plan
        places = np.arange(-batch.start % step, batch.rows, step)
        if not len(places) or plan.task == "custom":
            return
        inputs = {name: a[places] if a.ndim else a for name, a in batch.inputs.items()}
        kept = select_scores(self._engine.candidate(inputs)[self._engine.graph_output(plan.output)], plan)
        codes = encode(batch.labels[places], plan)
        self._seen += len(places)
        if plan.classification:
            right = decide(kept, plan) == codes
            self._right += int((right.all(axis=1) if right.ndim == 2 else right).sum())
        else:
            self._error += float(np.nansum(np.abs(kept.reshape(len(places), -1) - codes.reshape(len(places), -1))))

    def _count_shared(self, column: str) -> Duplicates:
        own = self._scores.columns[column]
        shared = np.isin(own, self._columns[column])
        return Duplicates(int(shared.sum()), len(own), tuple(np.flatnonzero(shared)[:SHOWN].tolist()))

    def _find_near(self) -> Near | None:
        """Test rows that almost are training rows: nearer than training rows are to each other."""
        field = next((n.removeprefix("sample/") for n in self._columns if n.startswith("sample/")), "")
        test = self._scores.columns.get(f"sample/{field}")
        if test is None or self.count < 50 or test.shape[1] < 2:
            return None
        sample = self._columns[f"sample/{field}"]
        chosen = slice(None, None, max(1, len(sample) // PROBES))
        probes, places, space = sample[chosen], self._columns["sample_rows"][chosen], _Space(sample)
        batches = self._rows.batches(0, self._engine.batch)
        rows = rechunk(({"rows": space.of(extract_features(batch.inputs[field]))} for batch in batches), CHUNK)
        queries, own = np.concatenate([test, probes]), np.concatenate([np.full(len(test), -1), places])
        distances = find_nearest(space.of(queries), own, (table["rows"] for table in rows))
        test_near, probe_near = distances[: len(test)], distances[len(test) :]
        usual = float(np.median(probe_near))
        if not np.isfinite(usual) or usual <= 0:
            return None
        tested = self._scores.columns["sample_rows"]
        exact = np.isin(self._scores.columns["hash"][tested], self._columns["hash"])
        ratios, natural, near = test_near[~exact] / usual, probe_near / usual, tested[~exact]
        rings = tuple(Ring(r, int((ratios < r).sum()), len(ratios), float((natural < r).mean())) for r in RADII)
        closest = np.argsort(ratios, kind="stable")[:SHOWN]
        return Near(usual, rings, tuple(near[closest].tolist()), tuple(ratios[closest].tolist()), len(natural))

    def _measure_gap(self) -> Gap | None:
        if not self._seen:
            return None
        if self._scores.plan.classification:
            interval = bound_proportion(self._right, self._seen)
            return Gap("accuracy", interval.value, self._seen, interval.low, interval.high)
        return Gap("mae", self._error / self._seen, self._seen)

    def _find_shifts(self) -> tuple[Shift, ...]:
        """Features whose distribution differs most: the largest distance of the two distribution functions."""
        found = []
        for name, train in self._columns.items():
            test = self._scores.columns.get(name)
            if not name.startswith("sample/") or test is None or test.shape[1] != train.shape[1]:
                continue
            values = np.array([measure_shift(train[:, i], test[:, i]) for i in range(train.shape[1])])
            worst = int(np.argmax(values))
            critical = find_critical_shift(len(train), len(test), train.shape[1])
            found.append(
                Shift(
                    input=name.removeprefix("sample/"),
                    feature=worst,
                    distance=float(values[worst]),
                    critical=critical,
                    features=int((values > critical).sum()),
                    of=len(values),
                    train_magnitude=float(np.abs(train[np.isfinite(train)]).max(initial=0.0)),
                )
            )
        return tuple(found)


class _Space:
    """Rows on a common scale, and in fewer dimensions where there are many."""

    def __init__(self, sample: Array) -> None:
        spread, self._centre = np.nanstd(sample, axis=0, dtype=np.float64), np.nanmean(sample, axis=0, dtype=np.float64)
        self._scale = np.where(spread > 0, 1.0 / np.maximum(spread, 1e-30), 0.0)
        width = sample.shape[1]
        self._matrix: Array | None = None
        if width > 2 * PROJECTED:
            generator = np.random.default_rng(width)
            self._matrix = (generator.standard_normal((width, PROJECTED)) / np.sqrt(PROJECTED)).astype(np.float32)

    def of(self, rows: Array) -> Array:
        """Some rows in this space."""
        scaled = np.nan_to_num((rows - self._centre) * self._scale, posinf=1e6, neginf=-1e6)
        scaled = np.clip(scaled, -1e3, 1e3)
        scaled = scaled.astype(np.float64 if scaled.shape[1] <= 32 else np.float32)  # in few dimensions rows lie close
        return np.asarray(scaled @ self._matrix if self._matrix is not None else scaled)


def find_nearest(queries: Array, own: Array, chunks: Iterable[Array]) -> Array:
    """The distance of every query to the nearest row that is not its own (by number, −1 for none)."""
    best, start = np.full(len(queries), np.inf), 0
    for chunk in chunks:
        rows = chunk.astype(np.float64)
        for part in (slice(first, first + PROBES) for first in range(0, len(queries), PROBES)):
            squares, places = _measure_squares(queries[part].astype(np.float64), rows), own[part] - start
            inside = np.flatnonzero((places >= 0) & (places < len(rows)))
            squares[inside, places[inside]] = np.inf
            best[part] = np.minimum(best[part], np.sqrt(squares.min(axis=1)))
        start += len(rows)
    return np.where(best > ROUNDING * np.linalg.norm(queries, axis=1), best, 0.0)


def _measure_squares(a: Array, b: Array) -> Array:
    """The squared distance of every row of one to every row of the other."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(squares, 0.0))


def measure_shift(a: Array, b: Array) -> float:
    """Kolmogorov–Smirnov's distance of what is finite in two samples."""
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    return float(ks_2samp(a, b, method="asymp").statistic) if len(a) and len(b) else 0.0


def find_critical_shift(n: int, m: int, features: int, level: float = 1e-3) -> float:
    """The distance that chance exceeds with probability `level` in any of the features."""
    return float(kolmogi(level / max(features, 1)) * np.sqrt((n + m) / (n * m)))
