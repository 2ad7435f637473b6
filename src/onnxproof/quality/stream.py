"""A data set as a stream of batches: whatever its size, only a few batches are in memory."""

from __future__ import annotations

import hashlib
import json
import queue
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.data import LABELS, Table, load_data
from onnxproof.errors import InputError, listed

Array = NDArray[Any]
Item = TypeVar("Item")
READ_BYTES = 4_000_000
"""Bytes that are read from a file at once."""
IDS = ("id", "ids", "example_id", "row_id", "uuid")
SPLITS = ("test", "validation", "valid", "dev")
"""Splits of a Hugging Face data set, in the order in which one is taken."""


class Source(Protocol):
    """Rows that can be read in batches."""

    rows: int | None
    """How many there are, where that is known."""
    sequential: bool
    """Whether rows can only be read from the start to the end, in this process."""
    fields: tuple[str, ...]

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        """Batches of `size` rows (the last may be smaller) from `start` to `stop`."""

    def column(self, name: str) -> Array | None:
        """All values of one field; None where that would mean to read everything."""

    def fingerprint(self) -> str:
        """Changes when the data change, as far as can be seen from outside."""


def open_source(text: str, flag: str = "--data") -> Source:
    """The source that a user means."""
    path, colon, _ = text.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_object(text)
    file = Path(text)
    if file.is_dir():
        return ArrowFolder(file, flag)
    if not file.is_file():
        raise InputError(f"{flag}: there is no file {text}")
    try:
        return _from_file(file)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{flag} {text} cannot be read: {type(error).__name__}: {error}") from error


def _from_file(file: Path) -> Source:
    if file.suffix == ".npz":
        return ArraySource(_npz(file), file_fingerprint(file))
    if file.suffix == ".npy":
        return ArraySource({"X": _npy(file)}, file_fingerprint(file))
    if file.suffix == ".parquet":
        return ParquetSource(file)
    if file.suffix == ".csv":
        return CsvSource(file)
    return ArraySource(dict(load_data(str(file))), file_fingerprint(file))


def file_fingerprint(file: Path) -> str:
    """Name, size and time of a file."""
    stat = file.stat()
    return hashlib.blake2b(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode(), digest_size=12).hexdigest()


def values_fingerprint(table: Table) -> str:
    """A hash of all values of a table in memory."""
    digest = hashlib.blake2b(digest_size=12)
    for name, array in table.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data if array.dtype.kind in "fiub" else repr(array.tolist()).encode())
    return digest.hexdigest()


# --- arrays, in memory or in a file -------------------------------------------------------------------------------


class FileArray:
    """Rows of an array in a file, read when asked for: pages of a memory map would count as this process's memory."""

    def __init__(self, file: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], keep: Any = None) -> None:
        self._file, self._offset, self.shape, self.dtype = file, offset, shape, dtype
        self._row = int(np.prod(shape[1:], dtype=np.int64)) if shape else 1
        self._keep = keep
        """What must live as long as the file does."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(len(self))
        values = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
        with self._file.open("rb", buffering=0) as stream:
            stream.seek(self._offset + start * self._row * self.dtype.itemsize)
            left = values.reshape(-1).view(np.uint8).data
            while left.nbytes:
                count = stream.readinto(left)
                if not count:
                    raise InputError(f"{self._file} ends before its last row")
                left = left[count:]
        return values


def _npy(file: Path, offset: int = 0, keep: Any = None) -> Any:
    """An array of a file without reading it, or the array itself where its layout forbids that."""
    with file.open("rb") as stream:
        stream.seek(offset)
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if not shape or fortran or dtype.hasobject:
            stream.seek(offset)
            return np.lib.format.read_array(stream, allow_pickle=False)
        return FileArray(file, stream.tell(), shape, dtype, keep)


def _npz(file: Path) -> dict[str, Any]:
    """Members that are stored as they are get read in place; compressed ones are unpacked beside, on disk."""
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.compress_type == zipfile.ZIP_STORED:
                arrays[name] = _npy(file, _data_offset(file, member))
            else:
                folder = tempfile.TemporaryDirectory(prefix="onnxproof-data-")
                arrays[name] = _npy(Path(archive.extract(member, folder.name)), keep=folder)
    return arrays


def _data_offset(file: Path, member: zipfile.ZipInfo) -> int:
    with file.open("rb") as stream:
        stream.seek(member.header_offset + 26)
        name, extra = (int.from_bytes(stream.read(2), "little") for _ in range(2))
    return member.header_offset + 30 + name + extra


class ArraySource:
    """Arrays with a row per example, all of the same length; others (scalars) are left out."""

    sequential = False

    def __init__(self, arrays: Mapping[str, Any], mark: str, offset: int = 0) -> None:
        """`offset`: the number of the first row, where these are some rows of more."""
        sized = {name: a for name, a in arrays.items() if a.shape}
        lengths = {name: len(a) for name, a in sized.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"--data: the arrays have different numbers of rows: {lengths}")
        self._arrays = sized
        self._mark = mark
        self._offset = offset
        self.rows: int | None = next(iter(lengths.values()), 0)
        self.fields = tuple(sized)

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        count, start = self.rows or 0, start - self._offset
        end = count if stop is None else min(count, stop - self._offset)
        row = sum(int(np.prod(a.shape[1:])) * a.dtype.itemsize for a in self._arrays.values())
        step = size * max(1, READ_BYTES // max(1, row * size))
        for block in range(start, end, step):
            last = min(block + step, end)
            held = {name: np.asarray(a[block:last]) for name, a in self._arrays.items()}
            for first in range(0, last - block, size):
                yield {name: a[first : first + size] for name, a in held.items()}

    def column(self, name: str) -> Array | None:
        return np.asarray(self._arrays[name][: self.rows])

    def fingerprint(self) -> str:
        return self._mark


# --- arrow --------------------------------------------------------------------------------------------------------


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
    if any(value is None or not isinstance(value, str) for value in values[:1]) and values:
        raise InputError(f"--data: column {name!r} holds {kind}; expected numbers, texts, or lists of numbers")
    return np.array(["" if value is None else value for value in values])


# --- iterables ----------------------------------------------------------------------------------------------------


class IterableSource:
    """A `DataLoader` or any iterable of batches, made anew for every pass."""

    sequential = True

    def __init__(self, text: str, make: Any) -> None:
        self._text = text
        self._make = make
        self.rows: int | None = _known_length(make())
        first = next(iter(self._tables()), None)
        if first is None:
            raise InputError(f"--data {text} gives no batch")
        self.fields = tuple(first)
        self._first = values_fingerprint(first)

    def _tables(self) -> Iterator[Table]:
        for batch in self._make():
            yield as_table(batch)

    def read(self, start: int, stop: int | None, size: int) -> Iterator[Table]:
        yield from rechunk(window(self._tables(), start, None if stop is None else stop - start), size)

    def column(self, name: str) -> Array | None:
        return None

    def fingerprint(self) -> str:
        # Only the first batch is seen: a loader that shuffles is never resumed, one whose later rows alone change is.
        return f"{self._text} {file_fingerprint(Path(self._text.rpartition(':')[0]))} {self._first}"


def _known_length(value: Any) -> int | None:
    try:
        return len(value.dataset)
    except (AttributeError, TypeError):
        return None


def as_table(batch: Any) -> Table:
    """One batch of a loader: a mapping, (inputs, labels), or an array."""
    if isinstance(batch, Mapping):
        return {str(name): np.asarray(value) for name, value in batch.items()}
    if isinstance(batch, (tuple, list)) and batch and hasattr(batch[0], "shape"):
        names = ["X", "labels"] if len(batch) == 2 else ["X", *(f"X{i}" for i in range(1, len(batch)))]
        return {name: np.atleast_1d(np.asarray(value)) for name, value in zip(names, batch, strict=True)}
    if isinstance(batch, (tuple, list)) and len(batch) == 2 and isinstance(batch[0], Mapping):
        return {**as_table(batch[0]), "labels": np.atleast_1d(np.asarray(batch[1]))}
    return {"X": np.asarray(batch)}


def _from_object(text: str) -> Source:
    from onnxproof.subject import load_target

    value, _ = load_target(text)
    made = value() if callable(value) and not hasattr(value, "__iter__") and not _is_dataset(value) else value
    if isinstance(made, Mapping) or hasattr(made, "shape") or _pair_of_arrays(made):
        table = as_table(made)
        return ArraySource(table, f"{text} {values_fingerprint(table)}")
    if _is_dataset(made):
        made = _loader(made)
        return IterableSource(text, lambda: made)
    if not isinstance(made, Iterable):
        raise InputError(f"--data {text} is a {type(made).__name__}; expected arrays, batches or a torch data set")
    if iter(made) is made:  # an iterator is spent after one pass
        if value is made:
            raise InputError(f"--data {text} is an iterator, which can be read once: give a function that returns it")
        return IterableSource(text, value)
    return IterableSource(text, lambda: made)


def _is_dataset(value: Any) -> bool:
    from torch.utils.data import Dataset

    return isinstance(value, Dataset)


def _loader(dataset: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=256)


def _pair_of_arrays(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(hasattr(part, "shape") for part in value)


# --- batches ------------------------------------------------------------------------------------------------------


def length(table: Table) -> int:
    """Rows of a table."""
    return next((len(array) for array in table.values()), 0)


def window(tables: Iterable[Table], skip: int, count: int | None) -> Iterator[Table]:
    """`count` rows after the first `skip`."""
    left = count
    for table in tables:
        rows = length(table)
        if skip >= rows:
            skip -= rows
            continue
        end = rows if left is None else min(rows, skip + left)
        if skip or end < rows:
            table = {name: array[skip:end] for name, array in table.items()}
        if left is not None:
            left -= end - skip
        skip = 0
        if length(table):
            yield table
        if left == 0:
            return


def rechunk(tables: Iterable[Table], size: int) -> Iterator[Table]:
    """The same rows in tables of `size` rows; only the last may be smaller."""
    held: list[Table] = []
    count = 0
    for table in tables:
        if not held and length(table) == size:
            yield table
            continue
        held.append(table)
        count += length(table)
        if count >= size:
            joined = _joined(held)
            full = count - count % size
            for first in range(0, full, size):
                yield {name: array[first : first + size] for name, array in joined.items()}
            held = [{name: array[full:] for name, array in joined.items()}] if full < count else []
            count -= full
    if count:
        yield _joined(held)


def _joined(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def prefetch(tables: Iterator[Item], depth: int = 2) -> Iterator[Item]:
    """The same tables, read ahead in a thread while the models run."""
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for table in tables:
                if not put((table, None)):
                    return
            put((None, None))
        except BaseException as error:  # it is raised where the tables are used
            put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            table, error = waiting.get()
            if error is not None:
                raise error
            if table is None:
                return
            yield table
    finally:
        stop.set()


def find_field(
    fields: Iterable[str], given: str | None, usual: Iterable[str], taken: Iterable[str], flag: str
) -> str | None:
    """The field that a flag names, or the first usual one that is no input of the model."""
    names = list(fields)
    if given is not None:
        if given not in names:
            raise InputError(f"{flag}: the data have no field {given!r}; they have {listed(names)}")
        return given
    inputs = set(taken)
    return next((name for name in usual if name in names and name not in inputs), None)


def find_labels(fields: Iterable[str], given: str | None, taken: Iterable[str]) -> str | None:
    """The field with the labels."""
    return find_field(fields, given, LABELS, taken, "--labels")
