"""Data in two parts: rows that calibrate, and rows that judge. No row is in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from onnxproof.data.source import Source, Table, count_rows
from onnxproof.errors import InputError
from onnxproof.request.specs import Part
from onnxproof.tensors.arrays import Array

# Rows that calibrate: no more than these, and no more than a share of all.
MOST, SHARE = 256, 4
SEED = 0


def take_part(source: Source, part: Part) -> Source:
    """The rows of a part: drawn by a fixed seed, in the order that they have."""
    return source if part == "all" else SomeRows(source, part)


class SomeRows(Source):
    """A part of the rows of a source, numbered anew."""

    def __init__(self, whole: Source, part: Part) -> None:
        super().__init__(whole.label, whole.fields, None, f"{whole.fingerprint}-{part}")
        self._whole, self._part = whole, part
        self.sequential, self.columnar = whole.sequential, whole.columnar
        self.constants, self.classes = whole.constants, whole.classes

    @cached_property
    def _places(self) -> Array:
        # Not before fields are selected: others may have another number of rows.
        rows = self._whole.count()
        if rows < SHARE:
            needed = f"at least {SHARE} are needed, so that some calibrate and others judge"
            raise InputError(f"{self.label} has {rows} rows: {needed}")
        chosen = np.zeros(rows, bool)
        chosen[np.random.default_rng(SEED).permutation(rows)[: min(MOST, rows // SHARE)]] = True
        return np.flatnonzero(chosen if self._part == "calibration" else ~chosen)

    def select(self, names: Iterable[str]) -> Source:
        chosen = SomeRows(self._whole.select(names), self._part)
        chosen.count()
        return chosen

    def count(self) -> int:
        self.rows = len(self._places)
        return self.rows

    def _read_tables(self, start: int, size: int) -> Iterator[Table]:
        if start >= len(self._places):
            return
        at, end = int(self._places[start]), int(self._places[-1]) + 1
        for table in self._whole.read(at, end, size):
            after = at + count_rows(table)
            here = self._places[np.searchsorted(self._places, at) : np.searchsorted(self._places, after)] - at
            at = after
            if len(here):
                yield {name: array[here] for name, array in table.items()}

    def take(self, places: Array) -> Table:
        return self._whole.take(self._places[places])
