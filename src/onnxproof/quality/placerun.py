"""Both sides on rows whose every place is decided for: pixels of a map, tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onnxproof.quality.accumulate import SIDES
from onnxproof.quality.rows import Batch
from onnxproof.quality.shardrun import ShardRun
from onnxproof.quality.task import decide, encode_places, select_scores
from onnxproof.tensors.arrays import Array

# Examples of a shard whose changed places the float64 truth is asked about, and places of one example.
EXAMINED_ROWS, EXAMINED_PLACES = 32, 4096


class PlaceRun(ShardRun):
    """Of each example and side, counts of classes: rightly decided for, decided for, and true."""

    def _take(self, batch: Batch) -> None:
        plan, raw, codes = self._plan, self._score(batch), encode_places(batch.labels, self._plan)
        kept = {side: select_scores(value, plan) for side, value in raw.items()}
        decisions = {side: decide(scores, plan).reshape(codes.shape) for side, scores in kept.items()}
        self._keep("labels", (codes >= 0).sum(axis=1))
        for side, decided in decisions.items():
            self._keep(f"{side}_counts", count_places(codes, decided, plan.columns))
        if plan.scale != "decision":
            by_row = {side: scores.reshape(batch.rows, -1) for side, scores in kept.items()}
            self._farthest.see(batch, by_row, self._compare(by_row))
        self._find_flips(batch, kept, decisions, codes)

    def _find_flips(
        self, batch: Batch, kept: Mapping[str, Array], decisions: Mapping[str, Array], codes: Array
    ) -> None:
        changed = (decisions["baseline"] != decisions["candidate"]) & (codes >= 0)
        self._flipped += int(changed.sum())
        for row in np.flatnonzero(changed.any(axis=1)).tolist():
            places = np.flatnonzero(changed[row])[:EXAMINED_PLACES]
            sides = {side: kept[side][row * codes.shape[1] + places] for side in SIDES}
            decided = {side: decisions[side][row, places] for side in SIDES}
            known = self._examined < EXAMINED_ROWS
            self._examined += known
            # A module that wants its whole batch gets the same example as often.
            copies = np.full(self._engine.fixed or 1, row)
            inputs = {name: a[copies] if a.ndim else a for name, a in batch.inputs.items()}
            explained = self._make_explainer(places).explain(inputs, sides, decided) if known else None
            for i, place in enumerate(places.tolist()):
                flip = {
                    "id": batch.name(row),
                    "row": batch.start + row,
                    "label": self._name_decision(codes[row, place]),
                }
                flip["place"] = [int(part) for part in np.unravel_index(place, batch.labels.shape[1:])]
                flip |= {side: self._name_decision(decided[side][i]) for side in SIDES}
                self._flips.append(flip | (explained.of(i) if explained is not None else {}))


def count_places(codes: Array, decided: Array, classes: int) -> Array:
    """For each example: places of each class that are rightly decided for, decided for, and true; those without a label left out."""
    rows = np.arange(len(codes))[:, None] * classes
    known = codes >= 0
    parts = [
        np.bincount((rows + values)[chosen & (values >= 0)], minlength=len(codes) * classes).reshape(-1, classes)
        for values, chosen in ((codes, known & (codes == decided)), (decided, known), (codes, known))
    ]
    return np.concatenate(parts, axis=1).astype(np.int64)
