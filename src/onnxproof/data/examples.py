"""Rows of a source as a model takes them: inputs, labels and ids, for parity cases and for evaluation alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onnxproof.data.fields import BOXES, IDS, LABELS, cast, choose_fields, find_field, select_inputs
from onnxproof.data.opening import SUFFIXES, open_source
from onnxproof.data.source import Source, Table
from onnxproof.errors import InputError, list_names
from onnxproof.tensors.arrays import Array


class Examples:
    """A source with the roles of its fields known."""

    def __init__(
        self, source: Source, inputs: Mapping[str, Array], labels: str | None, ids: str | None, *, raw: bool = False
    ) -> None:
        """`inputs`: an example of each. `raw`: fields become inputs later, and all of them may be needed for that."""
        self._file_labels = _load_labels(labels)
        given = labels if self._file_labels is None else None
        self.labels = find_field(source.fields, given, LABELS, () if raw else inputs, "--labels")
        self.ids = find_field(source.fields, ids, IDS, inputs, "--ids")
        self.boxes = None if raw or self.labels is None else find_field(source.fields, None, BOXES, inputs, "")
        """The boxes that the labels are of."""
        roles = [name for name in (self.labels, self.ids, self.boxes) if name is not None]
        self.columns = {name: kind for name, kind in source.fields.items() if name not in roles}
        """The fields that are neither labels nor ids."""
        self._inputs = {name: example for name, example in inputs.items() if example.ndim}
        single = [name for name in self._inputs if name in source.constants]
        if single:
            raise InputError(f"{source.label}: {list_names(single)} is a single value; expected an array of rows")
        self._constants = {
            name: cast(source.constants.get(name, example), example.dtype, f"{source.label}: {name}")
            for name, example in inputs.items()
            if not example.ndim
        }
        chosen = {} if raw else choose_fields(self.columns, self._inputs, source.label)
        wanted = self.columns if raw else [field for fields in chosen.values() for field in fields]
        self.source = source.select([*wanted, *roles])
        if self._file_labels is not None and not source.first and source.columnar:
            known, rows = len(self._file_labels), self.source.count()
            if known != rows:
                raise InputError(f"--labels {labels} has {known} rows and the data have {rows}")

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None or self._file_labels is not None

    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, where the data tell them."""
        return self.source.classes.get(self.labels or "", ())

    def read_labels(self) -> Array | None:
        """Every label."""
        if self._file_labels is not None:
            return self._file_labels
        if self.boxes is not None and self.labels is not None:
            return _join_boxes(self.source.column(self.boxes), self.source.column(self.labels))
        return self.source.column(self.labels) if self.labels is not None else None

    def labels_of(self, table: Table, at: int, count: int) -> Array:
        """The labels of a batch that begins with row `at`; NaN where there are none."""
        if self._file_labels is not None:
            return self._file_labels[at : at + count]
        if self.boxes is not None and self.labels is not None:
            return _join_boxes(table[self.boxes], table[self.labels])
        return table[self.labels] if self.labels is not None else np.full(count, np.nan)

    def raw(self, table: Table) -> Table:
        """The fields of a batch that are neither labels nor ids."""
        return {name: array for name, array in table.items() if name in self.columns}

    def to_inputs(self, table: Table) -> Table:
        """The model's inputs from fields that are neither labels nor ids."""
        return {**select_inputs(table, self._inputs, self.source.label), **self._constants}

    def take(self, places: Array) -> Table:
        """The inputs of the rows with these numbers (some, ascending)."""
        return self.to_inputs(self.raw(self.source.take(places)))


def _join_boxes(boxes: Array, labels: Array) -> Array:
    """Rows of four corners and a class for each image."""
    if boxes.ndim != 3 or boxes.shape[2] != 4 or labels.shape != boxes.shape[:2]:
        raise InputError(
            f"boxes have the shape {list(boxes.shape)} and labels {list(labels.shape)}: expected (images, most, 4) with left, top, right and "
            "bottom, and (images, most), with a label of -1 where an image has fewer"
        )
    return np.concatenate([boxes.astype(np.float64), labels[..., None].astype(np.float64)], axis=2)


def _load_labels(given: str | None) -> Array | None:
    """Labels in a file of their own."""
    if given is None or Path(given).suffix not in SUFFIXES or not Path(given).is_file():
        return None
    source = open_source(given, "--labels")
    if not source.fields:
        raise InputError(f"--labels {given} has no rows")
    return source.column(find_field(source.fields, None, LABELS, (), "--labels") or next(iter(source.fields)))
