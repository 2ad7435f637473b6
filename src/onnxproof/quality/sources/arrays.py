"""Arrays with a row per example: in memory, or in a file of which only the rows asked for are read."""

from __future__ import annotations

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
