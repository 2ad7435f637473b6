"""Values within a budget of memory: what does not fit goes to disk and comes back when it is asked for."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 16
"""Bytes up to which a value always stays in memory."""


class Store(MutableMapping[str, NDArray[Any]]):
    """A mapping from names to arrays; the ones not used for longest leave memory first."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._folder = tempfile.TemporaryDirectory(prefix="onnxproof-values-")
        self._held: OrderedDict[str, NDArray[Any]] = OrderedDict()
        self._files: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self.spilled = 0
        """Bytes that were written to disk."""

    def __setitem__(self, name: str, value: NDArray[Any]) -> None:
        if name in self:
            del self[name]
        array = np.asarray(value)
        self._held[name] = array
        self._sizes[name] = array.nbytes
        self._bytes += array.nbytes
        self._make_room(name)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self._held:
            self._held.move_to_end(name)
            return self._held[name]
        array: NDArray[Any] = np.load(self._files[name], allow_pickle=False)
        return array

    def __delitem__(self, name: str) -> None:
        if name in self._held:
            self._bytes -= self._held.pop(name).nbytes
        file = self._files.pop(name, None)
        if file is not None:
            file.unlink()
        del self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sizes))

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it."""
        return self._sizes[name]

    def _make_room(self, newest: str) -> None:
        if self._bytes <= self._budget:
            return
        waiting = [name for name, array in self._held.items() if array.nbytes > SMALL and name != newest]
        for name in waiting:
            if self._bytes <= self._budget:
                return
            array = self._held.pop(name)
            self._bytes -= array.nbytes
            file = Path(self._folder.name) / f"{len(self._files)}-{self.spilled}.npy"
            np.save(file, array, allow_pickle=False)
            self._files[name] = file
            self.spilled += array.nbytes
