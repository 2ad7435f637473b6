"""Tables: parquet, csv and Hugging Face data sets on disk, read in record batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.cases.data import Table
from onnxproof.errors import InputError, listed
from onnxproof.quality.batches import rechunk, window
from onnxproof.quality.sources.base import Array, file_fingerprint

SPLITS = ("test", "validation", "valid", "dev")
"""Splits of a Hugging Face data set, in the order in which one is taken."""


def _pyarrow(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"pyarrow{module}")
    except ImportError:
        raise InputError("reading tables needs the package pyarrow: pip install 'onnxproof[data]'") from None


class ParquetSource:
    """A parquet file, read row group by row group."""

    sequential = False

    def __init__(self, file: Path) -> None:
        self._file = file
        reader = self._open()
        self.rows: int | None = reader.metadata.num_rows
        self.fields = tuple(reader.schema_arrow.names)
        counts = [reader.metadata.row_group(i).num_rows for i in range(reader.metadata.num_row_groups)]
        self._ends = np.cumsum(counts)

    def _open(self) -> Any:
        return _pyarrow(".parquet").ParquetFile(self._file, pre_buffer=False)

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        end = self.rows if stop is None else min(stop, self.rows or 0)
        begins = np.concatenate([[0], self._ends[:-1]]) if len(self._ends) else self._ends
        groups = [i for i, last in enumerate(self._ends) if last > start and begins[i] < (end or 0)]
        if not groups:
            return
        batches = self._open().iter_batches(batch_size=size, row_groups=groups, use_threads=False)
        tables = (to_table(batch) for batch in batches)
        yield from rechunk(window(tables, start - int(begins[groups[0]]), (end or 0) - start), size)

    def column(self, name: str) -> Array | None:
        table = self._open().read(columns=[name])
        return to_array(table[name], name)

    def fingerprint(self) -> str:
        return file_fingerprint(self._file)


class CsvSource:
    """A csv file with a header, read in blocks. Whole numbers are read as floats: a later block may have fractions."""

    sequential = True

    def __init__(self, file: Path) -> None:
        self._file = file
        self.rows: int | None = None
        self._csv = _pyarrow(".csv")
        with self._csv.open_csv(file) as reader:
            self.fields = tuple(reader.schema.names)
            arrow = _pyarrow("")
            whole = [f.name for f in reader.schema if arrow.types.is_integer(f.type) or arrow.types.is_null(f.type)]
            self._types = {name: arrow.float64() for name in whole}

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        options = self._csv.ConvertOptions(column_types=self._types)
        with self._csv.open_csv(self._file, convert_options=options) as reader:
            tables = (to_table(batch) for batch in reader)
            yield from rechunk(window(tables, start, None if stop is None else stop - start), size)

    def column(self, name: str) -> Array | None:
        include = self._csv.ConvertOptions(include_columns=[name], column_types=self._types)
        table = self._csv.read_csv(self._file, convert_options=include)
        self.rows = table.num_rows
        return to_array(table[name], name)

    def fingerprint(self) -> str:
        return file_fingerprint(self._file)


class ArrowFolder:
    """A Hugging Face data set on disk (`save_to_disk`): arrow files beside `state.json`, or one folder per split."""

    sequential = False

    def __init__(self, folder: Path, flag: str) -> None:
        self._folder = _split_folder(folder, flag)
        state = json.loads((self._folder / "state.json").read_text(encoding="utf-8"))
        self._files = [self._folder / entry["filename"] for entry in state["_data_files"]]
        self.rows: int | None = 0
        self.fields: tuple[str, ...] = ()
        self._counts: list[int] = []
        for file in self._files:
            with _pyarrow("").memory_map(str(file)) as stream:
                reader = _pyarrow(".ipc").open_stream(stream)
                self.fields = tuple(reader.schema.names)
                self._counts.append(sum(batch.num_rows for batch in reader))
        self.rows = sum(self._counts)

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        end = min(self.rows or 0, stop if stop is not None else self.rows or 0)
        yield from rechunk(window(self._tables(None, start), 0, end - start), size)

    def class_names(self, field: str) -> tuple[str, ...]:
        """The names that the data set gives to the classes of a field (`ClassLabel`)."""
        info = self._folder / "dataset_info.json"
        if not info.is_file():
            return ()
        features = json.loads(info.read_text(encoding="utf-8")).get("features") or {}
        return tuple((features.get(field) or {}).get("names") or ())

    def _tables(self, names: list[str] | None, start: int) -> Iterator[Table]:
        """Tables from row `start` on."""
        at = 0
        for file, count in zip(self._files, self._counts, strict=True):
            if at + count <= start:
                at += count
                continue
            with _pyarrow("").OSFile(str(file)) as stream:
                for batch in _pyarrow(".ipc").open_stream(stream):
                    skip = max(0, start - at)
                    at += batch.num_rows
                    if skip < batch.num_rows:
                        part = batch.slice(skip)
                        yield to_table(part.select(names) if names else part)

    def column(self, name: str) -> Array | None:
        parts = [table[name] for table in self._tables([name], 0)]
        return np.concatenate(parts) if parts else None

    def fingerprint(self) -> str:
        return "-".join(file_fingerprint(file) for file in self._files)


def _split_folder(folder: Path, flag: str) -> Path:
    if (folder / "state.json").is_file():
        return folder
    index = folder / "dataset_dict.json"
    if index.is_file():
        splits = json.loads(index.read_text(encoding="utf-8"))["splits"]
        chosen = next((name for name in SPLITS if name in splits), splits[0] if len(splits) == 1 else None)
        if chosen is not None:
            return folder / str(chosen)
        raise InputError(f"{flag} {folder} has the splits {listed(splits)}: name one, such as {folder / splits[0]}")
    raise InputError(f"{flag} {folder}: expected a file, or a folder that a Hugging Face data set was saved to")


def to_table(batch: Any) -> Table:
    """A record batch as arrays."""
    return {name: to_array(batch.column(i), name) for i, name in enumerate(batch.schema.names)}


def to_array(column: Any, name: str) -> Array:
    """One arrow column as an array; lists of equal length become further dimensions."""
    arrow = _pyarrow("")
    if isinstance(column, arrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, arrow.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else arrow.array([], column.type)
    kind = column.type
    if arrow.types.is_dictionary(kind):
        return to_array(column.dictionary_decode(), name)
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind):
        inner = to_array(column.flatten(), name)
        if not len(column) or len(inner) % len(column):
            raise InputError(
                f"--data: the lists in column {name!r} have different lengths; expected vectors of one length"
            )
        lengths = set(_pyarrow(".compute").list_value_length(column).unique().to_pylist())
        if len(lengths) > 1:
            raise InputError(
                f"--data: the lists in column {name!r} have different lengths: {sorted(map(str, lengths))[:4]}"
            )
        return inner.reshape(len(column), -1, *inner.shape[1:])
    if arrow.types.is_primitive(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    values = column.to_pylist()
    if values and not any(is_text(kind) for is_text in (arrow.types.is_string, arrow.types.is_large_string)):
        raise InputError(f"--data: column {name!r} holds {kind}; expected numbers, texts, or lists of numbers")
    return np.array(["" if value is None else value for value in values])
