"""Arrays with a row per example: in memory, or in a file of which only the rows asked for are read."""

from __future__ import annotations

import mmap
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.cases.data import Table
from onnxproof.errors import InputError
from onnxproof.quality.sources.base import Array

READ_BYTES = 4_000_000
"""Bytes that are read from a file at once."""


class FileArray:
    """Rows of an array in a file, read when asked for.

    Aligned rows are those of a private memory map, which costs no copy; its pages are given back as soon as the next rows are asked for,
    so that they do not count as this process's memory. Others (members of an npz mostly are not aligned) are read.
    """

    def __init__(self, file: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], keep: Any = None) -> None:
        self._file, self._offset, self.shape, self.dtype = file, offset, shape, dtype
        self._row = int(np.prod(shape[1:], dtype=np.int64)) if shape else 1
        self._keep = keep
        """What must live as long as the file does."""
        self._map: mmap.mmap | None = None
        self._shown = (0, 0)
        """The bytes of the map that were handed out last."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(len(self))
        at, count = self._offset + start * self._row * self.dtype.itemsize, max(0, stop - start)
        if at % self.dtype.alignment or not count or not hasattr(mmap.mmap, "madvise"):
            return self._read(at, count)
        return self._mapped(at, count)

    def _mapped(self, at: int, count: int) -> Array:
        if self._map is None:
            with self._file.open("rb") as stream:
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        first, length = self._shown
        if length:
            self._map.madvise(mmap.MADV_DONTNEED, first, length)
        try:
            values = np.frombuffer(self._map, self.dtype, count * self._row, at)
        except ValueError:
            raise self._short() from None
        page = at - at % mmap.PAGESIZE
        self._shown = page, at + values.nbytes - page
        return values.reshape(count, *self.shape[1:])

    def _read(self, at: int, count: int) -> Array:
        values = np.empty((count, *self.shape[1:]), self.dtype)
        with self._file.open("rb", buffering=0) as stream:
            stream.seek(at)
            left = values.reshape(-1).view(np.uint8).data
            while left.nbytes:
                taken = stream.readinto(left)
                if not taken:
                    raise self._short()
                left = left[taken:]
        return values

    def _short(self) -> InputError:
        return InputError(f"{self._file} ends before its last row")


def read_npy(file: Path, offset: int = 0, keep: Any = None) -> Any:
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


def read_npz(file: Path) -> dict[str, Any]:
    """Members that are stored as they are get read in place; compressed ones are unpacked beside, on disk."""
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.compress_type == zipfile.ZIP_STORED:
                arrays[name] = read_npy(file, _data_offset(file, member))
            else:
                folder = tempfile.TemporaryDirectory(prefix="onnxproof-data-")
                arrays[name] = read_npy(Path(archive.extract(member, folder.name)), keep=folder)
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
