"""Tables: parquet, csv and Hugging Face data sets on disk, read by pyarrow in record batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv, ipc, types
from pyarrow.parquet import ParquetFile

from onnxproof.data.source import Kind, Source, Table, check_names, fingerprint_files
from onnxproof.errors import InputError, list_names
from onnxproof.tensors.arrays import Array

# Splits of a Hugging Face data set, in the order in which one is taken.
SPLITS = ("test", "validation", "valid", "dev")


# A row group or a file: how many rows it has, and its record batches by fields (others may come too) and size.
Part = tuple[int | None, Callable[[list[str], int], Iterator[Any]]]


class ArrowSource(Source):
    """A table in parts that are read one by one."""

    def __init__(self, label: str, schema: Any, parts: Sequence[Part], files: Sequence[Path]) -> None:
        check_names(schema.names, label)
        self.sequential = any(count is None for count, _ in parts)
        rows = None if self.sequential else sum(count or 0 for count, _ in parts)
        super().__init__(label, {f.name: _classify_type(f.type) for f in schema}, rows, fingerprint_files(*files))
        self._parts = parts

    def _read_tables(self, start: int, size: int) -> Iterator[Table]:
        skip = start
        for count, read in self._parts:
            if count is not None and skip >= count:
                skip -= count
                continue
            for batch in read(list(self.fields), size):
                rows = batch.slice(skip)
                skip = max(0, skip - batch.num_rows)
                if rows.num_rows:
                    yield {name: self._read_column(rows.column(name), name) for name in self.fields}

    def _read_column(self, column: Any, name: str) -> Array:
        """One column as an array; lists of equal length become further dimensions."""
        kind = column.type
        if types.is_dictionary(kind):
            return self._read_column(column.dictionary_decode(), name)
        if _is_list(kind):
            lengths = compute.list_value_length(column).unique().to_pylist()
            if len(lengths) != 1 or None in lengths:
                told = f"the lists in column {name!r} have different lengths: {sorted(map(str, lengths))[:4]}"
                raise InputError(f"{self.label}: {told}")
            inner = self._read_column(column.flatten(), name)
            return inner.reshape(len(column), lengths[0], *inner.shape[1:])
        if types.is_string(kind) or types.is_large_string(kind):
            # A None among texts would make an array of objects.
            return np.array(column.fill_null("").to_pylist())
        # Only a float has NaN for what is missing; numpy has no decimals.
        if types.is_null(kind) or types.is_decimal(kind) or (types.is_boolean(kind) and column.null_count):
            column = column.cast(pa.float64())
        elif not types.is_primitive(kind):
            raise InputError(f"{self.label}: column {name!r} holds {kind}; expected numbers, texts or lists of numbers")
        return np.asarray(column.to_numpy(zero_copy_only=False))


def _is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _classify_type(kind: Any) -> Kind:
    if types.is_dictionary(kind):
        return _classify_type(kind.value_type)
    if _is_list(kind):
        return "vector"
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return "number" if any(test(kind) for test in tests) else "other"


def open_parquet(file: Path, label: str) -> Source:
    """Row group by row group."""
    with ParquetFile(file) as whole:
        schema, metadata = whole.schema_arrow, whole.metadata

    def read(group: int, names: list[str], size: int) -> Iterator[Any]:
        with ParquetFile(file, metadata=metadata, pre_buffer=False) as reader:
            yield from reader.iter_batches(size, [group], names, use_threads=False)

    parts = [(metadata.row_group(i).num_rows, partial(read, i)) for i in range(metadata.num_row_groups)]
    return ArrowSource(label, schema, parts, [file])


def open_csv(file: Path, label: str) -> Source:
    """Block by block. Whole numbers are read as floats: a later block may have fractions."""
    # Else a block may end within a quoted text that has several lines.
    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(file, parse_options=parse) as reader:
        schema = reader.schema
    whole = {f.name: pa.float64() for f in schema if types.is_integer(f.type) or types.is_null(f.type)}

    def read(names: list[str], size: int) -> Iterator[Any]:
        convert = csv.ConvertOptions(column_types=whole, include_columns=names)
        with csv.open_csv(file, parse_options=parse, convert_options=convert) as reader:
            yield from reader

    return ArrowSource(label, schema, [(None, read)], [file])


def open_folder(folder: Path, label: str) -> Source:
    """A saved Hugging Face data set (`save_to_disk`): arrow files beside `state.json`, or one folder per split."""
    folder = _choose_split(folder, label)
    files = [folder / entry["filename"] for entry in _read_json(folder / "state.json")["_data_files"]]

    def read(file: Path, names: list[str], size: int) -> Iterator[Any]:
        with pa.OSFile(str(file)) as stream:
            yield from ipc.open_stream(stream)

    parts = []
    for file in files:
        with pa.memory_map(str(file)) as stream:  # to count, nothing is read but where batches begin
            reader = ipc.open_stream(stream)
            parts.append((sum(batch.num_rows for batch in reader), partial(read, file)))
    source = ArrowSource(label, reader.schema, parts, files)
    if (folder / "dataset_info.json").is_file():
        features = _read_json(folder / "dataset_info.json").get("features") or {}
        source.classes = {name: tuple((feature or {}).get("names") or ()) for name, feature in features.items()}
    return source


def _choose_split(folder: Path, label: str) -> Path:
    if (folder / "state.json").is_file():
        return folder
    if not (folder / "dataset_dict.json").is_file():
        raise InputError(f"{label}: expected a file, or a folder that a Hugging Face data set was saved to")
    splits = _read_json(folder / "dataset_dict.json")["splits"]
    chosen = next((name for name in SPLITS if name in splits), splits[0] if len(splits) == 1 else None)
    if chosen is None:
        raise InputError(f"{label} has the splits {list_names(splits)}: name one, such as {folder / splits[0]}")
    return folder / str(chosen)


def _read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
