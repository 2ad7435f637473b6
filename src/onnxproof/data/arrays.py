"""Arrays with a row per example: in memory, or in a file of which only the rows asked for are read."""

from __future__ import annotations

import mmap
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.data.source import Source, Table, check_names, fingerprint_files, make_array, read_kinds
from onnxproof.errors import InputError
from onnxproof.tensors.arrays import Array

# Bytes that are read from a file at once.
READ_BYTES = 4_000_000


class ArraySource(Source):
    """Arrays with a row per example, all of the same length; single values hold for every row."""

    def __init__(self, arrays: Mapping[str, Any], label: str, fingerprint: str, first: int = 0) -> None:
        self._arrays = {name: a for name, a in arrays.items() if len(a.shape)}
        self.first = first
        lengths = set(map(len, self._arrays.values()))
        # Files hold other things beside rows (names of classes): lengths may differ until fields are selected.
        rows = None if len(lengths) > 1 else next(iter(lengths), 0)
        kinds = read_kinds({name: make_array(a[:0]) for name, a in self._arrays.items()})
        super().__init__(label, kinds, rows, fingerprint)
        self.constants = {name: make_array(a) for name, a in arrays.items() if name not in self._arrays}

    def select(self, names: Iterable[str]) -> Source:
        arrays = {**{name: self._arrays[name] for name in names}, **self.constants}
        chosen = ArraySource(arrays, self.label, self.fingerprint, self.first)
        chosen.count()
        return chosen

    def count(self) -> int:
        if self.rows is None:
            lengths = {name: len(a) for name, a in self._arrays.items()}
            raise InputError(f"{self.label}: the arrays have different numbers of rows: {lengths}")
        return self.rows

    def _read_tables(self, start: int, size: int) -> Iterator[Table]:
        row = sum(make_array(a[:1]).nbytes for a in self._arrays.values())
        step = size * max(1, READ_BYTES // max(1, row * size))
        for block in range(start - self.first, self.count(), step):
            yield {name: make_array(a[block : block + step]) for name, a in self._arrays.items()}
            for array in self._arrays.values():
                if isinstance(array, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
                    # What was read of a mapped file does not count as this process's memory any longer.
                    array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]  # numpy's own mmap.mmap

    def take(self, places: Array) -> Table:
        return {name: make_array(a[places]) for name, a in self._arrays.items()}


def open_npy(file: Path, label: str) -> Source:
    """A single array has no name: it is `X`."""
    return ArraySource({"X": _map_array(file, 0, label)}, label, fingerprint_files(file))


def open_npz(file: Path, label: str) -> Source:
    """Members that are stored as they are get read in place; compressed ones are unpacked, on disk."""
    # What is mapped can be read after its name is gone; where it cannot be unlinked before, it stays.
    unpacked = tempfile.TemporaryDirectory(prefix="onnxproof-data-", ignore_cleanup_errors=True)
    with zipfile.ZipFile(file) as archive, unpacked as folder:
        check_names(archive.namelist(), label)
        places = {m.filename.removesuffix(".npy"): _find_place(archive, m, file, folder) for m in archive.infolist()}
        arrays = {name: _map_array(*place, label) for name, place in places.items()}
    return ArraySource(arrays, label, fingerprint_files(file))


def _find_place(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path, folder: str) -> tuple[Path, int]:
    """The file that holds a member, and where it begins there: after a header that tells the sizes of two of its parts."""
    if member.compress_type != zipfile.ZIP_STORED:
        return Path(archive.extract(member, folder)), 0
    with file.open("rb") as stream:
        # Where the data begin only the local header tells: the directory's extra part may have another length.
        stream.seek(member.header_offset + 26)
        name, extra = (int.from_bytes(stream.read(2), "little") for _ in range(2))
    return file, member.header_offset + 30 + name + extra


def _map_array(file: Path, offset: int, label: str) -> Array:
    """The array at a place in a file, mapped into memory."""
    with file.open("rb") as stream:
        stream.seek(offset)
        # np.load maps no member of an npz, only whole files.
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise InputError(f"{label} holds Python objects, which are never unpickled: save numbers or texts")
        start = stream.tell()
        if start + dtype.itemsize * int(np.prod(shape, dtype=np.int64)) > stream.seek(0, 2):
            raise InputError(f"{label} ends before its last row: it is not complete")
        return np.memmap(file, dtype, "r", start, shape, "F" if fortran else "C")
