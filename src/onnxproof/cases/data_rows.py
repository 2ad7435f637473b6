"""Rows of the user's data as cases: some of them, held in memory, whatever the size of the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.plan import Case, Inputs
from onnxproof.data.examples import Examples
from onnxproof.errors import InputError
from onnxproof.tensors.arrays import Array

Places = NDArray[np.intp]
DATA_CASES = 16
# Rows of the user's data that generated values are drawn from.
SAMPLE_ROWS = 4096
# What these may weigh.
SAMPLE_BYTES = 64_000_000


class DataRows:
    """Windows of rows over all of the data; where there are too many, evenly spread ones, or some of every label."""

    def __init__(self, examples: Examples, size: int) -> None:
        """`size`: how many rows make a case."""
        self._examples = examples
        labels = examples.read_labels()
        self.count = examples.source.count()
        if not self.count:
            raise InputError(f"{examples.source.label} has no rows")
        self._order = stratify(labels) if labels is not None and len(labels) == self.count else None
        step = min(size, self.count)
        self.windows = [(start, step) for start in self._choose_starts(step)]
        self.sample = self._read_held()

    @property
    def stratified(self) -> bool:
        """Whether rows come in an order in which every label comes early."""
        return self._order is not None

    def _choose_starts(self, step: int) -> list[int]:
        last, number = self.count - step, min(DATA_CASES, -(-self.count // step))
        if self._order is not None:
            return list(dict.fromkeys(min(i * step, last) for i in range(number)))
        return [int(start) for start in np.unique(np.linspace(0, last, num=number, dtype=int))]

    def _read_held(self) -> Inputs:
        """Read the rows of all cases and an even sample in one pass; the sample."""
        one = sum(array.nbytes for array in self._examples.take(np.zeros(1, np.intp)).values())
        limit = max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // max(1, one)))
        sampled = np.arange(0, self.count, max(1, self.count // limit))
        self._places = np.unique(np.concatenate([sampled, *(self._list_rows(rows) for rows in self.windows)]))
        self._held = self._examples.take(self._places)
        return _take_rows(self._held, np.searchsorted(self._places, sampled))

    def _list_rows(self, rows: tuple[int, int]) -> Places:
        """The numbers of the rows of a window."""
        places = np.arange(rows[0], rows[0] + rows[1])
        return places if self._order is None else self._order[places]

    def cases(self) -> list[Case]:
        """One case for each window."""
        word = "rows" if self._order is None else "stratified"
        return [
            Case(
                f"data/{word}={rows[0]}-{sum(rows) - 1}",
                {},
                "data",
                rows=rows,
                repeated=max(0, end - rows[0]),
                core=rows == self.windows[0],
            )
            for rows, end in zip(self.windows, [0, *map(sum, self.windows)], strict=False)
        ]

    def read(self, rows: tuple[int, int]) -> Inputs:
        """The inputs of a window."""
        wanted = self._list_rows(rows)
        if np.isin(wanted, self._places).all():
            return _take_rows(self._held, np.searchsorted(self._places, wanted))
        ascending, back = np.unique(wanted, return_inverse=True)
        return _take_rows(self._examples.take(ascending), back)


def _take_rows(inputs: Inputs, places: Places) -> Inputs:
    return {name: array[places] if array.ndim else array for name, array in inputs.items()}


def stratify(labels: Array) -> Places | None:
    """Rows in an order that takes one of every label, then a second one of every label, and so on; None without classes."""
    if labels.ndim != 1 or not labels.size:
        return None
    classes, codes = np.unique(labels, return_inverse=True)
    if not 2 <= len(classes) <= min(1000, len(labels) // 2):
        return None
    together, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    turn = np.empty(len(labels), np.intp)
    turn[together] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.lexsort((codes, turn))
